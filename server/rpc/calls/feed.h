// From messages into a job.
#pragma once

#include "server/engine/job/intake.h"
#include "server/rpc/calls/call.h"

namespace tilewire::rpc {

/// Brings the rest of a chunk that Intake::Take() could not take at once into the job, waiting for staging
/// blocks as needed; its slices stay until then. Fails as Intake::GoOn does, or with the job's failure.
QueueTask<Status> FeedOn(Call& call, engine::Intake& intake);

}  // namespace tilewire::rpc

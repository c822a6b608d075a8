// From messages into a job.
#pragma once

#include "server/engine/job/intake.h"
#include "server/rpc/calls/call.h"

namespace tilewire::rpc {

/// Brings a chunk into the job, waiting for staging blocks as needed; its slices stay until then. Fails as
/// Intake::Take does, or with the job's failure.
QueueTask<Status> Feed(Call& call, engine::Intake& intake, const engine::Intake::Chunk& chunk);

}  // namespace tilewire::rpc

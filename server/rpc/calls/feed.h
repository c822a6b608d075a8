// From messages into a job.
#pragma once

#include "proto/wire/codec.h"
#include "server/engine/job/intake.h"
#include "server/rpc/calls/call.h"

namespace tilewire::rpc {

/// Copies a chunk into the job, waiting for staging blocks as needed. `pieces` are `bytes` bytes at `offset`
/// of `operand`. Fails as Intake::BeginChunk does, or with the job's failure.
QueueTask<Status> Feed(Call& call, engine::Job& job, engine::Intake& intake, uint32_t operand,
                       uint64_t offset, const wire::Pieces& pieces);

}  // namespace tilewire::rpc

// Unary requests for an operation: from bytes to what a job needs.
#pragma once

#include <memory>

#include "proto/wire/codec.h"
#include "server/engine/engine.h"
#include "server/rpc/calls/backlog.h"
#include "server/rpc/conversions/references.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {

struct UnaryRequest {
  engine::OperationPtr operation;
  wire::UnaryView view;
  engine::JobOptions options;
  References references;
};

/// Takes the message of a method apart: INVALID_ARGUMENT naming the field that is wrong, NOT_FOUND as Finder
/// does. `message` outlives the request's payloads.
using ParseUnary = Result<UnaryRequest>(const Received& message, Finder* finder);
ParseUnary ParseRmse, ParseTranspose, ParseGaussianPdf, ParseCompute;

/// Whether a job is a small one, as admission has it.
JobClass ClassOf(const engine::Operation& operation);
/// RESOURCE_EXHAUSTED `USE_EXECUTE` where the results are too large for a reply.
Status CheckSizes(const UnaryRequest& request);
/// `LIMIT` for a message that only Execute may have.
Status CheckMessage(const Received& message);

}  // namespace tilewire::rpc

// One attempt of a call as a single message. Internal to the library.
#pragma once

#include "client/cpp/call_spec.h"
#include "tilewire/v1/kernels.grpc.pb.h"

namespace tilewire::client {

/// Runs one attempt at an operation. Blocks until the reply is here or the call's deadline or stop request
/// ended it.
Attempt UnaryCall(v1::Kernels::Stub* stub, const CallSpec& spec);

}  // namespace tilewire::client

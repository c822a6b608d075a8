// One attempt of a call as a single message. Internal to the library.
#pragma once

#include <grpcpp/channel.h>

#include "client/cpp/call_spec.h"

namespace tilewire::client {

/// Runs one attempt at an operation. Blocks until the reply is here or the call's deadline or stop request
/// ended it.
Attempt UnaryCall(grpc::Channel* channel, const CallSpec& spec);

}  // namespace tilewire::client

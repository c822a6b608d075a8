// A queue of one gRPC server on which calls of another come, too. gRPC's C core has always allowed that; its
// C++ builder gives each server queues of its own. So the builder's is used for the first server, and the
// second is told of it in the one moment for that: when gRPC is about to start it, by its global callbacks.
#pragma once

#include <grpcpp/completion_queue.h>

namespace tilewire::rpc {

/// While one lives, a server that its thread starts may ask for calls on `queue`, too. The queue outlives
/// that server's shutdown, and what is asked for.
class SharedQueue {
 public:
  explicit SharedQueue(grpc::ServerCompletionQueue* queue);
  ~SharedQueue();
  SharedQueue(const SharedQueue&) = delete;
};

}  // namespace tilewire::rpc

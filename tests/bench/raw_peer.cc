// What gRPC alone can do with Tilewire's transport settings: a server that knows no arrays.
//   /raw/sink: bidirectional; copies every byte once into a pool of memory, while the next message comes, and
//   answers one empty message at half-close
//   /raw/echo: bidirectional; sends every message back, after as many microseconds of work as the call's
//   hold-us says, or hold-apart-us, where a thread of its own does the work and sends the message
// Arguments: bytes of the pool, of the receive quota and of the receive window; each may be left out.
// Prints "raw ready ADDR" and runs until SIGTERM.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "server/base/executor.h"
#include "server/base/limits.h"
#include "server/ops/process.h"
#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/transport.h"

namespace {

using namespace tilewire;  // NOLINT(google-build-using-namespace)

using Seconds = std::chrono::duration<double>;
using Until = std::chrono::time_point<std::chrono::steady_clock, Seconds>;

void WorkUntil(Until until) {
  while (std::chrono::steady_clock::now() < until) {
  }
}

class Peer {
 public:
  Peer(size_t pool_bytes, const rpc::ReceiveLimits& limits) : pool_bytes_(pool_bytes) {
    pool_ = static_cast<char*>(
        mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(pool_, 1, pool_bytes);
    grpc::ServerBuilder builder;
    rpc::ApplyTransportSettings(limits, &builder);
    builder.RegisterAsyncGenericService(&service_);
    builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port_);
    for (int i = 0; i < rpc::DefaultQueues(); ++i) queues_.push_back(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    for (auto& queue : queues_) Accept(queue.get());
    for (auto& queue : queues_) threads_.emplace_back([q = queue.get()] { rpc::ServeQueue(q); });
  }
  ~Peer() {
    server_->Shutdown(std::chrono::system_clock::now());
    while (active_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (auto& queue : queues_) queue->Shutdown();
    for (auto& thread : threads_) thread.join();
  }
  int port() const { return port_; }

 private:
  struct Call {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    rpc::Ahead next_read;
    grpc::ByteBuffer next;
    void BeginRead() {
      next_read.Begin([this](void* tag) { stream.Read(&next, tag); });
    }
  };

  rpc::Detached Accept(grpc::ServerCompletionQueue* queue) {
    for (;;) {
      auto call = std::make_shared<Call>();
      const bool ok = co_await rpc::Operation(
          [&](void* tag) { service_.RequestCall(&call->context, &call->stream, queue, queue, tag); });
      if (!ok) co_return;
      ++active_;
      Serve(call);
    }
  }

  rpc::Detached Serve(std::shared_ptr<Call> call) {
    const bool echo = call->context.method() == "/raw/echo";
    call->BeginRead();
    while (co_await call->next_read) {
      grpc::ByteBuffer message;
      message.Swap(&call->next);
      if (echo) {
        const Until now = std::chrono::steady_clock::now();
        WorkUntil(now + Asked(call->context, "hold-us"));
        if (const Seconds apart = Asked(call->context, "hold-apart-us"); apart > Seconds(0))
          co_await rpc::OnAnyThread<bool>([&](auto resume) {
            worker_.Post([until = now + apart, resume] {
              WorkUntil(until);
              resume(true);
            });
          });
        co_await rpc::Operation([&](void* tag) { call->stream.Write(message, tag); });
        call->BeginRead();
      } else {
        call->BeginRead();
        CopyIntoPool(message);
      }
    }
    grpc::ByteBuffer empty;
    if (!echo) co_await rpc::Operation([&](void* tag) { call->stream.Write(empty, tag); });
    co_await rpc::Operation([&](void* tag) { call->stream.Finish(grpc::Status::OK, tag); });
    --active_;
  }

  /// How long the client asks for.
  static Seconds Asked(const grpc::ServerContext& context, const char* key) {
    const auto asked = context.client_metadata().find(key);
    if (asked == context.client_metadata().end()) return Seconds(0);
    return std::chrono::duration<double, std::micro>(
        std::strtod(std::string(asked->second.data(), asked->second.size()).c_str(), nullptr));
  }

  void CopyIntoPool(const grpc::ByteBuffer& message) {
    std::vector<grpc::Slice> slices;
    (void)message.Dump(&slices);
    size_t at = next_.fetch_add(message.Length());
    for (const auto& slice : slices) {
      const size_t start = at % pool_bytes_;
      const size_t first = std::min(slice.size(), pool_bytes_ - start);
      std::memcpy(pool_ + start, slice.begin(), first);
      std::memcpy(pool_, slice.begin() + first, slice.size() - first);
      at += slice.size();
    }
  }

  SerialThread worker_{"held-apart"};
  const size_t pool_bytes_;
  char* pool_;
  int port_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<int> active_{0};
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (!ops::PrepareProcess().ok()) return 3;
  const auto argument = [&](int i, int64_t otherwise) {
    return argc > i ? static_cast<int64_t>(std::strtoull(argv[i], nullptr, 10)) : otherwise;
  };
  rpc::ReceiveLimits limits;
  limits.quota = argument(2, limits.quota);
  limits.window = argument(3, limits.window);
  Peer peer(static_cast<size_t>(argument(1, kGiB)), limits);
  std::printf("raw ready localhost:%d\n", peer.port());
  std::fflush(stdout);
  ops::WaitForSignal();
}

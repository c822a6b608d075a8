// What gRPC alone can do with Tilewire's transport settings: a server that knows no arrays.
//   /raw/sink: bidirectional; copies every byte once into a pool of memory, while the next message comes, and
//   answers one empty message at half-close
//   /raw/echo: bidirectional; sends every message back, after as many microseconds of work as the call's
//   hold-us says, or hold-apart-us, where a thread of its own does the work and sends the message
// and, on another port, the same sink as fast as gRPC knows how (callback_sink.h).
// Arguments: bytes of the pool, of the receive quota and of the receive window, and a folder for unix sockets
// to listen at in place of ports; each may be left out.
// Prints "raw ready ADDR fastest-sink ADDR" and runs until SIGTERM.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "server/base/executor.h"
#include "server/base/limits.h"
#include "server/ops/process.h"
#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/transport.h"
#include "tests/bench/callback_sink.h"
#include "tests/bench/pool.h"

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
  Peer(bench::Pool* pool, const rpc::ReceiveLimits& limits, const std::string& listen) : pool_(pool) {
    grpc::ServerBuilder builder;
    rpc::ApplyTransportSettings(limits, &builder);
    builder.RegisterAsyncGenericService(&service_);
    int port = 0;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    for (int i = 0; i < rpc::DefaultQueues(); ++i) queues_.push_back(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    address_ = bench::ListensAt(listen, port);
    for (auto& queue : queues_) Accept(queue.get());
    for (auto& queue : queues_) threads_.emplace_back([q = queue.get()] { rpc::ServeQueue(q); });
  }
  ~Peer() {
    server_->Shutdown(std::chrono::system_clock::now());
    while (active_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (auto& queue : queues_) queue->Shutdown();
    for (auto& thread : threads_) thread.join();
  }
  const std::string& address() const { return address_; }

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
        pool_->Copy(message);
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

  SerialThread worker_{"held-apart"};
  bench::Pool* const pool_;
  std::string address_;
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
  bench::Pool pool(static_cast<size_t>(argument(1, kGiB)));
  const auto listen = [&](const char* name) {
    return argc > 4 ? "unix:" + std::string(argv[4]) + "/" + name : "localhost:0";
  };
  Peer peer(&pool, limits, listen("sink"));
  const bench::CallbackSink fastest(&pool, listen("fastest-sink"));
  std::printf("raw ready %s fastest-sink %s\n", peer.address().c_str(), fastest.address().c_str());
  std::fflush(stdout);
  ops::WaitForSignal();
}

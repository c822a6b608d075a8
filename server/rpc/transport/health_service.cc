#include "server/rpc/transport/health_service.h"

#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <utility>
#include <vector>

namespace tilewire::rpc {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Asked for in advance, a method.
constexpr int kAccepts = 4;

}  // namespace

struct HealthService::CheckCall {
  grpc::ServerContext context;
  HealthCheckRequest request;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> responder{&context};
};

/// Lives until its coroutine has ended and gRPC has said that the call is over.
class HealthService::WatchCall final : public Event {
 public:
  explicit WatchCall(HealthService* health) : health_(health) {
    context.AsyncNotifyWhenDone(static_cast<void*>(static_cast<Event*>(this)));
  }
  ~WatchCall() {
    {
      const MutexLock lock(health_->mutex_);
      health_->watches_.erase(this);
    }
    if (started_) health_->Ended();
  }

  /// The request is here.
  void Start(std::shared_ptr<WatchCall> self) {
    started_ = true;
    health_->Began();
    const MutexLock lock(health_->mutex_);
    Watch& watch = health_->watches_[this];
    watch.service = request.service();
    if (!watch.over) watch.self = std::move(self);
  }
  /// Calls `resume` once: with another state than `told`, or with none when the call is over.
  void Next(std::optional<State> told, Resume resume) {
    std::optional<State> state;
    {
      const MutexLock lock(health_->mutex_);
      Watch& watch = health_->watches_[this];
      if (!watch.over) state = health_->StateOf(watch.service);
      if (state && state == told) {
        watch.waiting = std::move(resume);
        return;
      }
    }
    resume(state);
  }

  grpc::ServerContext context;
  HealthCheckRequest request;
  grpc::ServerAsyncWriter<HealthCheckResponse> writer{&context};

 private:
  void Complete(bool) override {
    std::shared_ptr<WatchCall> self;
    Resume resume;
    {
      const MutexLock lock(health_->mutex_);
      Watch& watch = health_->watches_[this];
      watch.over = true;
      self = std::move(watch.self);
      resume = std::exchange(watch.waiting, nullptr);
    }
    if (resume) resume(std::nullopt);
  }

  HealthService* const health_;
  bool started_ = false;
};

void HealthService::Accept(grpc::ServerCompletionQueue* queue) {
  for (int i = 0; i < kAccepts; ++i) {
    AcceptCheck(queue);
    AcceptWatch(queue);
  }
}

void HealthService::Began() {
  const MutexLock lock(mutex_);
  ++calls_;
}

void HealthService::Ended() {
  const MutexLock lock(mutex_);
  if (--calls_ == 0) idle_.NotifyAll();
}

void HealthService::WaitIdle() {
  WaitAccepted();
  const MutexLock lock(mutex_);
  while (calls_ > 0) idle_.Wait(mutex_);
}

HealthService::State HealthService::StateOf(const std::string& service) const {
  const auto found = serving_.find(service);
  if (found == serving_.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void HealthService::Set(const std::string& service, bool serving) {
  std::vector<Resume> told;
  {
    const MutexLock lock(mutex_);
    const auto [entry, fresh] = serving_.try_emplace(service, serving);
    if (!fresh && entry->second == serving) return;
    entry->second = serving;
    for (auto& [call, watch] : watches_)
      if (watch.waiting && watch.service == service) told.push_back(std::exchange(watch.waiting, nullptr));
  }
  for (const Resume& resume : told)
    resume(serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
}

Detached HealthService::AcceptCheck(grpc::ServerCompletionQueue* queue) {
  const Acceptors::One accepting(&acceptors_);
  for (;;) {
    auto call = std::make_unique<CheckCall>();
    const bool ok = co_await Operation([&](void* tag) {
      service_.RequestCheck(&call->context, &call->request, &call->responder, queue, queue, tag);
    });
    if (!ok) co_return;
    Answer(std::move(call));
  }
}

Detached HealthService::Answer(std::unique_ptr<CheckCall> call) {
  Began();
  HealthCheckResponse response;
  {
    const MutexLock lock(mutex_);
    response.set_status(StateOf(call->request.service()));
  }
  co_await Operation([&](void* tag) {
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      call->responder.FinishWithError({grpc::StatusCode::NOT_FOUND, "service name unknown"}, tag);
    } else {
      call->responder.Finish(response, grpc::Status::OK, tag);
    }
  });
  call.reset();
  Ended();
}

Detached HealthService::AcceptWatch(grpc::ServerCompletionQueue* queue) {
  const Acceptors::One accepting(&acceptors_);
  for (;;) {
    auto call = std::make_shared<WatchCall>(this);
    const bool ok = co_await Operation([&](void* tag) {
      service_.RequestWatch(&call->context, &call->request, &call->writer, queue, queue, tag);
    });
    if (!ok) co_return;
    call->Start(call);
    Tell(std::move(call));
  }
}

Detached HealthService::Tell(std::shared_ptr<WatchCall> call) {
  std::optional<State> told;
  for (bool taken = true; taken;) {
    const auto state =
        co_await OnAnyThread<std::optional<State>>([&](auto resume) { call->Next(told, std::move(resume)); });
    if (!state) break;
    HealthCheckResponse response;
    response.set_status(*state);
    taken = co_await Operation([&](void* tag) { call->writer.Write(response, tag); });
    told = state;
  }
  co_await Operation([&](void* tag) {
    call->writer.Finish({grpc::StatusCode::CANCELLED, "the watch is over"}, tag);
  });
}

}  // namespace tilewire::rpc

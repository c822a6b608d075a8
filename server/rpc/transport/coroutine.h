// C++20 coroutines over gRPC completion queues: the only place where tags and coroutine handles meet, but for
// AtOnce (crew.h).
//
// Rules that keep it right:
//   - one thread serves a queue of calls that stream (QueueThread), so two events of one such queue never run
//   at once; unary calls, of one coroutine each, share a queue that several threads may serve (Crew);
//   - what is awaited says where it resumes (Resumes): gRPC's operations and OnQueue() on a thread of the
//   queue, OnAnyThread() where the callback happens to be called. A QueueTask never leaves its queue's
//   threads, which the compiler checks; a Task may end on any thread;
//   - whoever starts an operation touches nothing of the coroutine's frame afterwards: the event may already
//   have resumed it;
//   - one coroutine awaits one thing: readers and writers of a stream are separate coroutines. What it has
//   begun (Ahead) while it does something else it awaits before it ends, so that gRPC writes into no memory
//   that is gone.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

namespace tilewire::rpc {

/// On which thread a coroutine goes on once what it awaits is there.
enum class Resumes : uint8_t {
  kOnQueue,   ///< one that serves the queue
  kAnywhere,  ///< the one that brought it: a lane's, a timer's, an executor's. No place to block or to stay
              ///< long.
};

/// Whether a coroutine of that promise may await what resumes it there.
template <typename Promise, Resumes where>
concept MayResume = where == Resumes::kOnQueue || Promise::kResumes == Resumes::kAnywhere;

/// What a completion-queue tag points to.
class Event {
 public:
  virtual void Complete(bool ok) = 0;
  uint64_t id = 0;  ///< tells it from another one that is where it was (AtOnce)

 protected:
  ~Event() = default;
};

/// Sends the event to the queue now. An alarm that is due "now" would come up to a millisecond later: gRPC
/// rounds its time up to whole ones. So it is due in the past.
inline void ComeAtOnce(grpc::Alarm* alarm, grpc::CompletionQueue* queue, Event* event) {
  alarm->Set(queue, gpr_inf_past(GPR_CLOCK_REALTIME), event);
}

/// A coroutine that nobody awaits; it frees itself. An exception that leaves it ends the program, so bodies
/// catch.
struct Detached {
  struct promise_type {
    static constexpr Resumes kResumes = Resumes::kAnywhere;
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// A coroutine that starts when awaited and resumes its awaiter with a value, or rethrows: where `where`
/// says, or without any change of thread. Await it exactly once.
template <typename T, Resumes where = Resumes::kAnywhere>
class [[nodiscard]] Task {
 public:
  static constexpr Resumes kResumes = where;
  struct promise_type {
    static constexpr Resumes kResumes = where;
    std::optional<T> value;
    std::exception_ptr exception;
    std::coroutine_handle<> awaiter;

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Final {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          return self.promise().awaiter;
        }
        void await_resume() noexcept {}
      };
      return Final{};
    }
    void return_value(T v) { value.emplace(std::move(v)); }
    void unhandled_exception() { exception = std::current_exception(); }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  requires MayResume<Promise, where> std::coroutine_handle<> await_suspend(
      std::coroutine_handle<Promise> awaiter)
  noexcept {
    handle_.promise().awaiter = awaiter;
    return handle_;
  }
  T await_resume() {
    if (handle_.promise().exception) std::rethrow_exception(handle_.promise().exception);
    return std::move(*handle_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

/// One that stays with its queue: it awaits nothing that could resume it elsewhere.
template <typename T>
using QueueTask = Task<T, Resumes::kOnQueue>;

/// Awaits one gRPC operation: `start(tag)` must start exactly one operation with that tag. Yields its `ok`,
/// on the thread of the queue that the operation was given.
template <typename Start>
class [[nodiscard]] Operation final : public Event {
 public:
  static constexpr Resumes kResumes = Resumes::kOnQueue;
  explicit Operation(Start start) : start_(std::move(start)) {}
  Operation(const Operation&) = delete;

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  requires MayResume<Promise, kResumes>
  void await_suspend(std::coroutine_handle<Promise> awaiter) {
    awaiter_ = awaiter;
    start_(static_cast<void*>(static_cast<Event*>(this)));
  }
  bool await_resume() const noexcept { return ok_; }
  void Complete(bool ok) override {
    ok_ = ok;
    awaiter_.resume();
  }

 private:
  Start start_;
  std::coroutine_handle<> awaiter_;
  bool ok_ = false;
};

/// A gRPC operation that is begun now and awaited later, once, by one coroutine. What the operation writes to
/// must outlive it: await it, if pending(), before that memory goes. It may be begun anew after each await,
/// which resumes on the queue's thread.
class Ahead : public Event {
 public:
  static constexpr Resumes kResumes = Resumes::kOnQueue;
  Ahead() = default;
  Ahead(const Ahead&) = delete;

  /// `start(tag)` must start exactly one operation with that tag. Not while one is pending.
  template <typename Start>
  void Begin(Start start) {
    state_.store(kUnderWay, std::memory_order_relaxed);
    start(static_cast<void*>(static_cast<Event*>(this)));
  }
  /// Begun, and not awaited yet.
  bool pending() const { return state_.load(std::memory_order_relaxed) != kNone; }

  // To be awaited; yields its `ok`. Here an event may come between Begin and the await, or during it, so both
  // sides say where they are.
  bool await_ready() const noexcept { return state_.load(std::memory_order_acquire) == kEnded; }
  template <typename Promise>
  requires MayResume<Promise, kResumes>
  bool await_suspend(std::coroutine_handle<Promise> awaiter) noexcept {
    awaiter_ = awaiter;
    State expected = kUnderWay;
    return state_.compare_exchange_strong(expected, kAwaited, std::memory_order_acq_rel);
  }
  bool await_resume() noexcept {
    state_.store(kNone, std::memory_order_relaxed);
    return ok_;
  }
  void Complete(bool ok) override {
    ok_ = ok;
    if (state_.exchange(kEnded, std::memory_order_acq_rel) == kAwaited) awaiter_.resume();
  }

 private:
  enum State : uint8_t { kNone, kUnderWay, kAwaited, kEnded };
  std::atomic<State> state_{kNone};
  std::coroutine_handle<> awaiter_;
  bool ok_ = false;
};

/// Awaits a callback: `start(resume)` must arrange that `resume(T)` is called exactly once, on any thread,
/// perhaps before it returns: then the coroutine just goes on. Else, with kOnQueue, it resumes on the thread
/// of `queue` (17 µs more), and with kAnywhere on the one that calls resume().
template <typename T, Resumes where, typename Start>
class [[nodiscard]] Callback final : public Event {
 public:
  static constexpr Resumes kResumes = where;
  Callback(grpc::CompletionQueue* queue, Start start) : queue_(queue), start_(std::move(start)) {}
  Callback(const Callback&) = delete;

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  requires MayResume<Promise, kResumes>
  bool await_suspend(std::coroutine_handle<Promise> awaiter) {
    awaiter_ = awaiter;
    start_([this](T value) {
      value_.emplace(std::move(value));
      if (!second_.exchange(true)) return;  // called before await_suspend was through: it goes on by itself
      if constexpr (where == Resumes::kOnQueue) {
        ComeAtOnce(&alarm_.emplace(), queue_, this);
      } else {
        awaiter_.resume();
      }
    });
    return !second_.exchange(true);
  }
  T await_resume() { return std::move(*value_); }
  void Complete(bool) override { awaiter_.resume(); }

 private:
  grpc::CompletionQueue* const queue_;
  Start start_;
  std::coroutine_handle<> awaiter_;
  std::optional<T> value_;
  std::atomic<bool> second_{false};
  std::optional<grpc::Alarm> alarm_;  // costs as much as all the rest, and is seldom needed
};

/// Awaits a callback and resumes on the thread of `queue`, which is the coroutine's.
template <typename T, typename Start>
Callback<T, Resumes::kOnQueue, Start> OnQueue(grpc::CompletionQueue* queue, Start start) {
  return Callback<T, Resumes::kOnQueue, Start>(queue, std::move(start));
}
/// Awaits a callback and resumes on whichever thread makes it.
template <typename T, typename Start>
Callback<T, Resumes::kAnywhere, Start> OnAnyThread(Start start) {
  return Callback<T, Resumes::kAnywhere, Start>(nullptr, std::move(start));
}

/// Awaits the queue: goes on on a thread that serves it.
class [[nodiscard]] Onto final : public Event {
 public:
  static constexpr Resumes kResumes = Resumes::kOnQueue;
  explicit Onto(grpc::CompletionQueue* queue) : queue_(queue) {}
  Onto(const Onto&) = delete;

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  requires MayResume<Promise, kResumes>
  void await_suspend(std::coroutine_handle<Promise> awaiter) {
    awaiter_ = awaiter;
    ComeAtOnce(&alarm_, queue_, this);
  }
  void await_resume() const noexcept {}
  void Complete(bool) override { awaiter_.resume(); }

 private:
  grpc::CompletionQueue* const queue_;
  std::coroutine_handle<> awaiter_;
  grpc::Alarm alarm_;
};

/// Serves a queue until it is shut down and drained.
inline void ServeQueue(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Event*>(tag)->Complete(ok);
}

}  // namespace tilewire::rpc

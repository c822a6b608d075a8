// The threads of a queue on which short calls come: no more of them are awake than there is work for.
//
// gRPC 1.51 has one epoll set a process. Whichever thread waits in it reads what comes, and where that is for
// another queue, or for another thread of this one, that thread has to be woken: 10 to 50 us on virtual
// machines, more than a small call takes. So one thread waits, and does what it read itself. Where calls
// follow each other closely it waits awake: a core that sleeps in between takes as long to wake as such a
// call to be served. Only when small calls come faster than the threads awake can do them another joins, and
// stays for as long as it finds some: threads that wait awake look by turns, and wake nobody. Some of the
// cores do, since each call costs more the more do: what gRPC shares goes from core to core. Where one is
// long with a call it is replaced; so is one that gRPC keeps (progress.h).
//
// Where more calls come than its threads can do they wait in line (Turn), in the order in which they came.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/progress.h"

namespace tilewire::rpc {

/// Serves a queue, and waits awake for what its threads await (Awaited). Events of one queue may run at once,
/// on several threads: what is served so must bear that. Thread-safe.
class Crew {
 public:
  struct Options {
    /// Where a call came less than this after there was nothing left to do, what comes next is waited for
    /// awake, for as long.
    std::chrono::microseconds close{};
    int together = 1;  ///< as many threads as that for small calls call no other
    int in_a_row = 2;  ///< small calls of one thread, after which it is behind
  };
  explicit Crew(grpc::CompletionQueue* queue) : Crew(queue, Options{}) {}
  Crew(grpc::CompletionQueue* queue, const Options& options)
      : queue_(queue), close_(options.close), together_(options.together), in_a_row_(options.in_a_row) {}
  /// After the queue's shutdown, and when nothing can start an operation on it any more: returns when it is
  /// empty.
  ~Crew();
  Crew(const Crew&) = delete;

  /// Once. Throws std::system_error where the system has no threads for `most`.
  void Start(int most);

  bool has_threads() const { return most_ > 0; }
  /// How many of its threads are not needed now.
  int resting() const;
  /// To be said several times a second while there are connections: for threads that stand others go on, as
  /// many more as that takes, up to 64. Not beside Start or the end.
  void LookAfter(TimePoint now);

  /// Said by whoever takes a call: another thread looks after the queue where this one took so many in a
  /// row, without having to wait in between, or is `busy` with the call for long. No-op on other threads.
  static void Took(bool busy);
  /// Said later by who turns out to be busy for long.
  static void StaysBusy();

  /// Whether calls that this thread takes had better wait for their turn: it took many and still finds more,
  /// or others wait for theirs. False on other threads.
  static bool IsBehind();
  /// Awaited by a coroutine on one of its threads: goes on, on any of them, when those before it have gone on
  /// and the queue is empty, or has had its share. So calls wait where one knows since when, and not in gRPC,
  /// where nobody does; and what has begun goes before what has not.
  class Turn {
   public:
    /// `whose` it is, for OneOfEachFirst.
    explicit Turn(const void* whose) : whose_(whose) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waits);
    void await_resume() const noexcept {}

   private:
    const void* const whose_;
  };
  /// One of each whose calls are in the line of this thread's crew has its turn next. No-op on other threads.
  static void OneOfEachFirst();

 private:
  template <typename Start>
  friend class AtOnce;
  /// An event that was taken from the queue by one of its threads in the middle of something: done next.
  static void Keep(Event* event, bool ok);
  static uint64_t NewId() {
    static std::atomic<uint64_t> threads{0};
    thread_local uint64_t last = (threads.fetch_add(1, std::memory_order_relaxed) + 1) << 40;
    return ++last;
  }

  struct Rests {
    CondVar called;
    bool is_called = false;
  };
  struct InLine {
    std::coroutine_handle<> waits;
    const void* whose;
  };
  /// One of its threads. What is not atomic is guarded by the mutex, or is that of LookAfter.
  struct Member {
    Progress progress;
    std::atomic<bool> stands{false};  ///< set with the mutex
    bool rests = false, watches = false;
  };

  struct Duty;
  static constinit thread_local Duty duty;

  void Run();
  void AddThread() TILEWIRE_REQUIRES(mutex_);
  /// Said by a thread whenever it is about to do something, or has. Whether it had stood.
  bool GetsOn();
  void StandsNoMore(Member* member);
  void WatchesNoMore(Member* member) TILEWIRE_REQUIRES(mutex_);
  void SleepsNoMore(const Member* member) TILEWIRE_REQUIRES(mutex_);
  bool has_line() const { return line_length_.load(std::memory_order_relaxed) > 0; }
  /// Lets those go on whose turn it is, a few; false: there were none.
  bool LetFirstGoOn();
  /// Does what there is, without waiting; false: the queue is shut down and empty.
  bool DoWhatIsThere();
  /// Waits for an event, and does that; false as above.
  bool DoNext();
  enum class Found : uint8_t { kEvent, kNothing, kEnd };
  /// The next event, waited for since `begin`; kNothing: others watch, too, and are enough.
  Found WatchAwake(TimePoint begin, void** tag, bool* ok);
  Found WatchAsleep(void** tag, bool* ok);
  /// Or has been replaced.
  bool IsOneTooMany() TILEWIRE_REQUIRES(mutex_);
  /// Whether this thread is one that waits for events. Else it rests until it is called, or the crew ends.
  bool TakesTurn();
  void WhoIsBehindCalls();
  void WhoIsBusyCalls();
  /// Another one, unless somebody watches.
  void Call() TILEWIRE_REQUIRES(mutex_);
  void WasBusy();
  void End();

  grpc::CompletionQueue* const queue_;
  const std::chrono::microseconds close_;
  const int together_, in_a_row_;
  int most_ = 0;  ///< threads, as of Start
  mutable Mutex mutex_;
  std::vector<std::thread> threads_ TILEWIRE_GUARDED_BY(mutex_);
  std::deque<Member> members_ TILEWIRE_GUARDED_BY(mutex_);  ///< where they are they stay
  int awake_ TILEWIRE_GUARDED_BY(mutex_) = 0;               ///< threads that do something, or watch
  int busy_ TILEWIRE_GUARDED_BY(mutex_) = 0;                ///< of them those that are long with one call
  int watching_ TILEWIRE_GUARDED_BY(mutex_) = 0;            ///< and those that wait for an event
  int calls_ TILEWIRE_GUARDED_BY(mutex_) = 0;               ///< threads that are called, not up yet
  /// Those that wait to be called. Who came last goes first: its core is awake, and the others' sleep on.
  std::vector<Rests*> resting_ TILEWIRE_GUARDED_BY(mutex_);
  bool ended_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::deque<InLine> line_ TILEWIRE_GUARDED_BY(mutex_);
  std::atomic<size_t> line_length_{0};
  std::atomic<bool> asleep_{false};  ///< the only one that watches sleeps in gRPC; set with the mutex
  Member* sleeper_ TILEWIRE_GUARDED_BY(mutex_) = nullptr;  ///< which one
  std::atomic<int> standing_{0};                           ///< threads; set with the mutex
};

/// Awaits one gRPC operation of a call that the crew's thread looks after (`start` as of Operation). What is
/// there already costs no event: gRPC would wake another thread for it, and hand the call over to that one.
template <typename Start>
class [[nodiscard]] AtOnce final : public Event {
 public:
  static constexpr Resumes kResumes = Resumes::kOnQueue;
  AtOnce(grpc::CompletionQueue* queue, Start start) : queue_(queue), start_(std::move(start)) {}
  AtOnce(const AtOnce&) = delete;

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  requires MayResume<Promise, kResumes>
  bool await_suspend(std::coroutine_handle<Promise> awaiter) {
    awaiter_ = awaiter;
    Event* const self = this;
    // Others may go on with the call, and another event be where this one was, before this thread comes back.
    const uint64_t own = id = Crew::NewId();
    void* tag = nullptr;
    bool ok = false;
    // If it is not there yet it may come on another thread, where the coroutine goes on: `this` may be gone.
    const auto next = queue_->DoThenAsyncNext([&] { start_(static_cast<void*>(self)); }, &tag, &ok,
                                              gpr_time_0(GPR_CLOCK_REALTIME));
    if (next != grpc::CompletionQueue::GOT_EVENT) return true;
    if (tag != static_cast<void*>(self) || self->id != own) {
      Crew::Keep(static_cast<Event*>(tag), ok);
      return true;
    }
    ok_ = ok;
    return false;
  }
  bool await_resume() const noexcept { return ok_; }
  void Complete(bool ok) override {
    ok_ = ok;
    awaiter_.resume();
  }

 private:
  grpc::CompletionQueue* const queue_;
  Start start_;
  std::coroutine_handle<> awaiter_;
  bool ok_ = false;
};

}  // namespace tilewire::rpc

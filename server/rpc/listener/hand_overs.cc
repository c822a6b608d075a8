#include "server/rpc/listener/hand_overs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>

namespace tilewire::rpc {
namespace {

/// So long may one wait for those before it.
constexpr std::chrono::milliseconds kLong{50};

}  // namespace

HandOvers::HandOvers(Arrivals::HandOver hand_over) : hand_over_(std::move(hand_over)) {
  const MutexLock lock(mutex_);
  AddThread();
}

void HandOvers::AddThread() {
  const int door = static_cast<int>(threads_.size());
  in_hand_.resize(threads_.size() + 1);
  threads_.emplace_back([this, door] { Run(door); });
}

void HandOvers::Give(FileDescriptor connection, Entrance by) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  waiting_.push_back({.connection = std::move(connection), .by = by, .since = Clock::now()});
  wake_.NotifyOne();
}

std::vector<HandOvers::Id> HandOvers::LookAfter(TimePoint now) {
  const MutexLock lock(mutex_);
  std::vector<Id> keep;
  if (stopped_)
    std::copy_if(in_hand_.begin(), in_hand_.end(), std::back_inserter(keep), [](Id id) { return id != 0; });
  if (waiting_.empty() || now - waiting_.front().since < kLong || threads_.size() >= Entrance::kDoors)
    return keep;
  try {
    AddThread();
  } catch (const std::exception&) {  // the system has none: at the next look, perhaps
  }
  return keep;
}

void HandOvers::Stop() {
  std::deque<Waits> closed;  // these without the lock
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    closed.swap(waiting_);
    threads.swap(threads_);
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

void HandOvers::Run(int door) {
  pthread_setname_np(pthread_self(), "tw-hand");
  RelockableMutexLock lock(mutex_);
  for (;;) {
    while (!stopped_ && waiting_.empty()) wake_.Wait(mutex_);
    if (stopped_) return;
    Waits next = std::move(waiting_.front());
    waiting_.pop_front();
    in_hand_[static_cast<size_t>(door)] = next.by.id;
    lock.Unlock();
    next.by.door = door;
    hand_over_(std::move(next.connection), next.by);
    lock.Lock();
    in_hand_[static_cast<size_t>(door)] = 0;
  }
}

}  // namespace tilewire::rpc

#include "server/rpc/listener/hand_overs.h"

#include <pthread.h>

namespace tilewire::rpc {

HandOvers::HandOvers(Arrivals::HandOver hand_over) : hand_over_(std::move(hand_over)) {
  thread_ = std::thread([this] { Run(); });
}

void HandOvers::Give(FileDescriptor connection, Entrance by) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  waiting_.emplace_back(std::move(connection), by);
  wake_.NotifyOne();
}

void HandOvers::Stop() {
  std::deque<std::pair<FileDescriptor, Entrance>> closed;  // without the lock
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    closed.swap(waiting_);
  }
  wake_.NotifyOne();
  if (thread_.joinable()) thread_.join();
}

void HandOvers::Run() {
  pthread_setname_np(pthread_self(), "tw-hand");
  RelockableMutexLock lock(mutex_);
  for (;;) {
    while (!stopped_ && waiting_.empty()) wake_.Wait(mutex_);
    if (stopped_) return;
    auto [connection, by] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.Unlock();
    hand_over_(std::move(connection), by);
    lock.Lock();
  }
}

}  // namespace tilewire::rpc

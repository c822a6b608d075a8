#include "client/python/core/pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "client/python/core/errors.h"

namespace tilewire::python {

Pool::Pool(size_t max_threads)
    : max_threads_(max_threads), descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0)
    throw StatusError(Status(Code::kResourceExhausted, "DESCRIPTORS", "this process may open no more files"));
}

Pool::~Pool() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    waiting_.clear();
    for (Call* const call : running_) call->Cancel();
    threads = std::move(threads_);
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
  close(descriptor_);
}

void Pool::Submit(Call* call, uint64_t number) {
  const MutexLock lock(mutex_);
  waiting_.push_back({call, number});
  if (waiting_.size() > idle_ && threads_.size() < max_threads_) threads_.emplace_back([this] { Work(); });
  wake_.NotifyOne();
}

std::vector<uint64_t> Pool::Finished() {
  uint64_t count = 0;
  const ssize_t taken = read(descriptor_, &count, sizeof(count));
  (void)taken;
  const MutexLock lock(mutex_);
  return std::exchange(finished_, {});
}

void Pool::Work() {
  RelockableMutexLock lock(mutex_);
  while (true) {
    ++idle_;
    while (!over_ && waiting_.empty()) wake_.Wait(mutex_);
    --idle_;
    if (over_) return;
    const Task task = waiting_.front();
    waiting_.pop_front();
    running_.push_back(task.call);
    lock.Unlock();
    task.call->Run();
    lock.Lock();
    running_.erase(std::find(running_.begin(), running_.end(), task.call));
    finished_.push_back(task.number);
    if (finished_.size() > 1) continue;  // the loop knows already
    const uint64_t one = 1;
    const ssize_t written = write(descriptor_, &one, sizeof(one));
    (void)written;
  }
}

}  // namespace tilewire::python

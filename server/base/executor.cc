#include "server/base/executor.h"

#include <pthread.h>

#include <utility>

namespace tilewire {

SerialThread::SerialThread(const char* name) : thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

SerialThread::~SerialThread() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

void SerialThread::Post(std::function<void()> function) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(function));
  }
  wake_.NotifyOne();
}

void SerialThread::Run() {
  RelockableMutexLock lock(mutex_);
  for (;;) {
    while (!stop_ && queue_.empty()) wake_.Wait(mutex_);
    if (queue_.empty()) return;
    std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    lock.Unlock();
    function();
    function = nullptr;  // what it holds goes now
    lock.Lock();
  }
}

}  // namespace tilewire

#include "server/engine/serial_thread.h"

#include <pthread.h>

#include <utility>

namespace tilewire::engine {

SerialThread::~SerialThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SerialThread::Post(std::function<void()> function) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(function));
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Run(); });
      pthread_setname_np(thread_.native_handle(), name_);
    }
  }
  wake_.notify_one();
}

void SerialThread::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    function();
    function = nullptr;  // what it holds goes now
    lock.lock();
  }
}

}  // namespace tilewire::engine

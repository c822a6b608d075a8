#include "server/engine/job/submissions.h"

#include <utility>

namespace tilewire::engine {

void Submissions::AddCopy(Lane* lane, Copy copy, std::byte* to, const std::byte* from, size_t bytes,
                          OnComplete done) {
  const MutexLock lock(mutex_);
  added_.push_back({lane, copy, to, from, bytes, std::nullopt, std::move(done)});
}

void Submissions::AddLaunch(Lane* lane, const Work& work, OnComplete done) {
  const MutexLock lock(mutex_);
  added_.push_back({lane, nullptr, nullptr, nullptr, 0, work, std::move(done)});
}

void Submissions::Flush() {
  RelockableMutexLock lock(mutex_);
  if (flushing_) return;
  flushing_ = true;
  while (!added_.empty()) {
    std::vector<Submission> next = std::exchange(added_, {});
    lock.Unlock();
    for (Submission& submission : next) {
      Lane& lane = *submission.lane;
      if (submission.copy) {
        (lane.*submission.copy)(submission.to, submission.from, submission.bytes, std::move(submission.done));
      } else {
        lane.Launch(*submission.work, std::move(submission.done));
      }
    }
    lock.Lock();
  }
  flushing_ = false;
}

}  // namespace tilewire::engine

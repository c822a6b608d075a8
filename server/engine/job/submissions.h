// Work of a job on its way to lanes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "server/base/mutex.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {

/// A job decides under its lock what lanes are to do, and gives it to them without: submitting may wait for a
/// device's driver, for which nobody who wants the job's lock is to wait. Lanes get it in the order in which
/// it was added. Thread-safe.
class Submissions {
 public:
  using Copy = void (Lane::*)(std::byte* to, const std::byte* from, size_t bytes, OnComplete done);

  void AddCopy(Lane* lane, Copy copy, std::byte* to, const std::byte* from, size_t bytes, OnComplete done);
  void AddLaunch(Lane* lane, const Work& work, OnComplete done);
  /// Submits what was added; where another thread is at it, that one does. Without a lock held, after each
  /// Add.
  void Flush() TILEWIRE_EXCLUDES(mutex_);

 private:
  struct Submission {
    Lane* lane;
    Copy copy;  ///< null: `work` is to be launched
    std::byte* to;
    const std::byte* from;
    size_t bytes;
    std::optional<Work> work;
    OnComplete done;
  };

  Mutex mutex_;
  std::vector<Submission> added_ TILEWIRE_GUARDED_BY(mutex_);
  bool flushing_ TILEWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace tilewire::engine

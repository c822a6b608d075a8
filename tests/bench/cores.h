#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tilewire::bench {

/// Cores of a list like "0,2-3". Throws std::invalid_argument where it is none.
std::vector<int> CoresOf(const std::string& list);

/// Has the calling thread, and what it starts from now on, run on these alone; "": leaves all as it is.
/// Throws std::runtime_error where there are no such cores.
void PinTo(const std::string& cores);

/// Tells which of a row of equal pieces of work took far longer than usual. Not thread-safe.
class SlowSteps {
 public:
  /// Whether this one took more than four times the median of the first hundred; false for these.
  bool Add(double seconds);

 private:
  std::array<double, 100> first_{};
  size_t count_ = 0;
  double usual_ = 0;
};

/// How slow the machine itself is, whoever uses it: on each of these cores a thread does ten microseconds of
/// arithmetic each millisecond, and looks how much processor time that took. Others on its core do not count,
/// nor memory: what does is a core that is given less than it seems (throttled, or its host's). After
/// jHiccup, which measures pauses by sleeping. Thread-safe; its threads end with it.
class SlowCores {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// None for "". Returns when it knows how long the arithmetic usually takes.
  explicit SlowCores(const std::string& cores);
  ~SlowCores();
  SlowCores(const SlowCores&) = delete;
  SlowCores& operator=(const SlowCores&) = delete;

  /// Milliseconds in which the core that was slow for longest did less than a quarter of the usual.
  double MsBetween(TimePoint from, TimePoint to) const;

 private:
  struct Core {
    mutable std::mutex mutex;
    std::vector<TimePoint> slow;  ///< each stands for a millisecond
    std::jthread thread;
  };
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace tilewire::bench

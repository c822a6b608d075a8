#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tilewire::bench {

/// Cores of a list like "0,2-3", in its order; none of "". Throws std::invalid_argument where it is no such
/// list.
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

/// Each time that a core was looked at, and whether it was slow then.
struct LookedAt {
  std::chrono::steady_clock::time_point when;
  bool slow = false;
};

/// Milliseconds from `from` until before `to` in which a core was slow: of all times that it was looked at
/// meanwhile, in order, the part in which it was. 0 where it was not looked at.
double SlowMs(const std::vector<LookedAt>& all, std::chrono::steady_clock::time_point from,
              std::chrono::steady_clock::time_point to);

/// How slow the machine itself is, whoever uses it: on each of these cores a thread does ten to twenty
/// microseconds of arithmetic each millisecond, and looks how much of its processor time that took. Others on
/// its core do not count, nor memory, nor what a quota takes or the kernel knows to be stolen: what does is a
/// core that is given less than it seems (clocked down, or its host's meanwhile), for a while; what is so
/// from the first tenth of a second on is taken for usual. After jHiccup, which measures pauses by sleeping.
/// Thread-safe; its threads end with it.
class SlowCores {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// None for "", nor for cores that do not exist. Returns when it knows how long the arithmetic usually
  /// takes.
  explicit SlowCores(const std::string& cores);
  ~SlowCores();
  SlowCores(const SlowCores&) = delete;
  SlowCores& operator=(const SlowCores&) = delete;

  /// Milliseconds in which the core that was slow for longest did less than a quarter of the usual; 0 without
  /// cores.
  double MsBetween(TimePoint from, TimePoint to) const;

 private:
  struct Core {
    mutable std::mutex mutex;
    std::vector<LookedAt> all;
    std::jthread thread;
  };
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace tilewire::bench

#include "tests/bench/cores.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <latch>
#include <sstream>
#include <stdexcept>

namespace tilewire::bench {
namespace {

constexpr std::chrono::milliseconds kEach{1};
constexpr double kTooSlow = 4;

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Seconds of the processor for a chain of multiplications: some ten microseconds, whatever the caches hold.
double Step() {
  constexpr int kMultiplications = 8000;
  static std::atomic<uint64_t> result;
  const double before = ProcessorSeconds();
  uint64_t value = result.load(std::memory_order_relaxed);
  for (int i = 0; i < kMultiplications; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  result.store(value, std::memory_order_relaxed);
  return ProcessorSeconds() - before;
}

}  // namespace

std::vector<int> CoresOf(const std::string& list) {
  std::vector<int> cores;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const int first = std::stoi(part),
              last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

void PinTo(const std::string& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : CoresOf(cores)) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) throw std::runtime_error("cannot run on cores " + cores);
}

bool SlowSteps::Add(double seconds) {
  if (count_ < first_.size()) {
    first_[count_++] = seconds;
    if (count_ < first_.size()) return false;
    const auto middle = first_.begin() + first_.size() / 2;
    std::nth_element(first_.begin(), middle, first_.end());
    usual_ = *middle;
    return false;
  }
  return seconds > kTooSlow * usual_;
}

SlowCores::SlowCores(const std::string& cores) {
  const std::vector<int> list = CoresOf(cores);
  const auto know = std::make_shared<std::latch>(static_cast<ptrdiff_t>(list.size()));
  for (const int number : list) {
    cores_.push_back(std::make_unique<Core>());
    Core* const core = cores_.back().get();
    core->thread = std::jthread([core, number, know](const std::stop_token& stop) {
      try {
        PinTo(std::to_string(number));
      } catch (const std::runtime_error&) {
        return know->count_down();  // a list may name more cores than there are
      }
      SlowSteps steps;
      for (int i = 0; i < 100; ++i) steps.Add(Step()), std::this_thread::sleep_for(kEach);
      know->count_down();
      while (!stop.stop_requested()) {
        const bool slow = steps.Add(Step());
        if (slow) {
          const std::lock_guard lock(core->mutex);
          core->slow.push_back(std::chrono::steady_clock::now());
        }
        std::this_thread::sleep_for(kEach);
      }
    });
  }
  know->wait();
}

SlowCores::~SlowCores() = default;

double SlowCores::MsBetween(TimePoint from, TimePoint to) const {
  ptrdiff_t most = 0;
  for (const auto& core : cores_) {
    const std::lock_guard lock(core->mutex);
    const auto& slow = core->slow;
    most = std::max(most, std::lower_bound(slow.begin(), slow.end(), to) -
                              std::lower_bound(slow.begin(), slow.end(), from));
  }
  return static_cast<double>(most);
}

}  // namespace tilewire::bench

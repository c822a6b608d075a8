#include "tests/bench/cores.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

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
  const auto number = [&](std::string_view text) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value >= CPU_SETSIZE)
      throw std::invalid_argument("no list of cores, like 0,2-3: " + list);
    return value;
  };
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string_view text = part;
    const size_t dash = text.find('-');
    const int first = number(text.substr(0, dash));
    const int last = dash == std::string::npos ? first : number(text.substr(dash + 1));
    if (last < first) throw std::invalid_argument("no list of cores, like 0,2-3: " + list);
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

double SlowMs(const std::vector<LookedAt>& all, std::chrono::steady_clock::time_point from,
              std::chrono::steady_clock::time_point to) {
  const auto before = [](const LookedAt& one, std::chrono::steady_clock::time_point when) {
    return one.when < when;
  };
  const auto first = std::lower_bound(all.begin(), all.end(), from, before);
  const auto last = std::lower_bound(first, all.end(), to, before);
  if (first == last) return 0;
  const auto slow = std::count_if(first, last, [](const LookedAt& one) { return one.slow; });
  return std::chrono::duration<double, std::milli>(to - from).count() * static_cast<double>(slow) /
         static_cast<double>(last - first);
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
        {
          const std::lock_guard lock(core->mutex);
          core->all.push_back({std::chrono::steady_clock::now(), slow});
        }
        std::this_thread::sleep_for(kEach);
      }
    });
  }
  know->wait();
}

SlowCores::~SlowCores() = default;

double SlowCores::MsBetween(TimePoint from, TimePoint to) const {
  double most = 0;
  for (const auto& core : cores_) {
    const std::lock_guard lock(core->mutex);
    most = std::max(most, SlowMs(core->all, from, to));
  }
  return most;
}

}  // namespace tilewire::bench

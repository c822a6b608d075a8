#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "kernels/bench/meter.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

#if defined(__x86_64__)
/// Drops every line of the memory from the caches of all cores.
void Flush(std::span<const std::byte> memory) {
  for (size_t at = 0; at < memory.size(); at += 64) _mm_clflush(memory.data() + at);
  _mm_mfence();
}
#else
/// Reads something larger than the caches instead, which leaves other cores' own caches alone.
void Flush(std::span<const std::byte> /*memory*/) {
  static const std::vector<std::byte> other(size_t{256} << 20, std::byte{1});
  const volatile std::byte* at = other.data();
  for (size_t i = 0; i < other.size(); i += 64) (void)at[i];
}
#endif

class HostSampler : public Sampler {
 public:
  HostSampler(Work& work, bool cold) : work_(work), cold_(cold) {}

  Status Sample(std::vector<double>* seconds) override {
    if (cold_) {
      for (const auto memory : work_.Touched()) Flush(memory);
    }
    const auto begin = std::chrono::steady_clock::now();
    TILEWIRE_RETURN_IF_ERROR(work_.Run(nullptr));
    const auto end = std::chrono::steady_clock::now();
    seconds->push_back(std::chrono::duration<double>(end - begin).count());
    return {};
  }

 private:
  Work& work_;
  const bool cold_;
};

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown processor";
}

int64_t PhysicalMemory() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
}

class HostMeter : public Meter {
 public:
  int64_t memory_bytes() const override { return PhysicalMemory() / 2; }

  Facts facts() const override {
    return {{"host", ProcessorName() + ", " + std::to_string(std::thread::hardware_concurrency()) +
                         " hardware threads, " + FormatBytes(PhysicalMemory())}};
  }

  Result<std::unique_ptr<Sampler>> Begin(Work& work, Mode mode) override {
    if (mode == Mode::kCompletion) {
      return Fail(
          Status(Code::kUnimplemented, "NO_SUCH_MODE", "on the host every run is timed to its completion"));
    }
    TILEWIRE_RETURN_IF_ERROR(work.Run(nullptr));  // page faults, threads' first steps
    return std::make_unique<HostSampler>(work, mode == Mode::kCold);
  }
};

}  // namespace

std::unique_ptr<Meter> MakeHostMeter() {
  return std::make_unique<HostMeter>();
}

}  // namespace tilewire::bench

// Who times a case: one meter for the host's clock, one for the GPU's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/bench/bench.h"

namespace tilewire::bench {

enum class Mode : uint8_t {
  kCold,        ///< nothing of the operands is in a cache when a run begins
  kHot,         ///< run after run over the same operands
  kCompletion,  ///< hot, but on the caller's clock: from the call of Run until its result is there
};
/// "cold", "hot", "completion".
std::string_view Name(Mode mode);
/// In that order.
std::vector<Mode> AllModes();

/// Times one case in one mode. Used by one thread; the Work must outlive it.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Appends the seconds of one run or several to `seconds`.
  virtual Status Sample(std::vector<double>* seconds) = 0;
  /// Runs behind one figure, where single runs are too short to be timed alone; else 1.
  virtual int batch() const { return 1; }
};

/// What the reports say about where a case ran: names and values in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Used by one thread.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual Stream stream() const { return nullptr; }
  /// Bytes that a case may allocate here.
  virtual int64_t memory_bytes() const = 0;
  virtual Facts facts() const = 0;
  /// UNIMPLEMENTED for a mode that makes no sense here.
  virtual Result<std::unique_ptr<Sampler>> Begin(Work& work, Mode mode) = 0;
};

/// The host: wall time of Work::Run. Cold runs find Work::Touched() flushed from every cache.
std::unique_ptr<Meter> MakeHostMeter();

/// GPU `device`, warmed up. `max_bytes`: most bytes a case may allocate; 0 = 90% of what is free.
/// UNAVAILABLE where there is no such GPU, or the program was built without CUDA.
Result<std::unique_ptr<Meter>> MakeDeviceMeter(int device, int64_t max_bytes);

}  // namespace tilewire::bench

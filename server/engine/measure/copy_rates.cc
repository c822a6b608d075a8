#include "server/engine/measure/copy_rates.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <future>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {

/// Below this a block costs more in events and wake-ups than it saves, however fast its copy is.
constexpr int64_t kLeastBlock = 256 * kKiB;
/// Larger copies are no faster.
constexpr int64_t kLargestMeasured = 16 * kMiB;
constexpr double kGoodShare = 0.8;
constexpr int64_t kBlocksAnOperand = 16;
constexpr int kRateRepeats = 5;

/// Submits once and waits: the completion.
template <typename Submit>
Completion Await(const Submit& submit) {
  std::promise<Completion> done;
  submit([&done](const Completion& completion) { done.set_value(completion); });
  return done.get_future().get();
}

/// Bytes a second of the fastest of some repeats; 0 when the clock saw no time pass.
template <typename Submit>
Result<double> Rate(int64_t bytes, const Submit& submit) {
  double best = 0;
  for (int i = 0; i < kRateRepeats; ++i) {
    const Completion completion = Await(submit);
    if (!completion.status.ok()) return Fail(completion.status);
    const double seconds = std::chrono::duration<double>(completion.end - completion.begin).count();
    if (seconds > 0) best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return best;
}

}  // namespace

Result<CopyRates> MeasureCopies(Device* device, Lane* lane, int64_t block_bytes) {
  if (device->facts().host_memory) return CopyRates();
  const int64_t largest = std::min(block_bytes, kLargestMeasured);
  TILEWIRE_ASSIGN_OR_RETURN(const Memory host, device->AllocatePinned(static_cast<size_t>(largest)));
  TILEWIRE_ASSIGN_OR_RETURN(const Memory there, device->AllocateDevice(static_cast<size_t>(largest)));
  std::memset(host.data(), 1, static_cast<size_t>(largest));  // its pages exist from here on
  const auto in = [&](int64_t bytes) {
    return Rate(bytes, [&](OnComplete done) {
      lane->CopyIn(there.data(), host.data(), static_cast<size_t>(bytes), std::move(done));
    });
  };
  CopyRates rates;
  TILEWIRE_ASSIGN_OR_RETURN(rates.in, in(largest));
  TILEWIRE_ASSIGN_OR_RETURN(rates.out, Rate(largest, [&](OnComplete done) {
                              lane->CopyOut(host.data(), there.data(), static_cast<size_t>(largest),
                                            std::move(done));
                            }));
  rates.least_block = largest;
  for (int64_t bytes = kLeastBlock; bytes < largest; bytes *= 2) {
    TILEWIRE_ASSIGN_OR_RETURN(const double rate, in(bytes));
    if (rate < kGoodShare * rates.in) continue;
    rates.least_block = bytes;
    break;
  }
  return rates;
}

int64_t BlockFor(int64_t operand_bytes, int64_t block_bytes, const CopyRates& rates) {
  const int64_t wanted = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(operand_bytes / kBlocksAnOperand, 1))));
  return std::min(block_bytes, std::max({wanted, rates.least_block, kLeastBlock}));
}

}  // namespace tilewire::engine

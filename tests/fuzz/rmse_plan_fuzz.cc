// rmse::Plan: the ranges cover every tile once, in order, and read no byte outside [byte_begin, byte_end).
#include <cmath>
#include <cstring>

#include "kernels/rmse/rmse.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using tilewire::rmse::Plan;
using tilewire::rmse::Range;

constexpr int64_t kMaxRangesChecked = 2000;
constexpr int64_t kMaxItemsMarked = 1 << 16;
constexpr int64_t kMaxBytesComputed = 1 << 16;
// Small arrays have one range; now and then a larger one is worth its time, but libFuzzer is better off with
// speed.
#if TILEWIRE_FUZZ_SMALL
constexpr int64_t kMaxBytesComputedRarely = kMaxBytesComputed;
#else
constexpr int64_t kMaxBytesComputedRarely = 8 << 20;
#endif

void CheckLayout(const Plan& plan) {
  const auto& layout = plan.layout();
  FUZZ_CHECK(layout.rank >= 0 && layout.rank <= tilewire::kMaxRank);
  FUZZ_CHECK(layout.segments * layout.elements == plan.operand().shape.elements());
  FUZZ_CHECK(layout.tiles == (layout.elements - 1) / tilewire::rmse::kTileElements + 1);
  FUZZ_CHECK(plan.result().dtype == tilewire::DType::kF64);
  FUZZ_CHECK(plan.result().shape.elements() == layout.segments);
  FUZZ_CHECK(plan.scratch_bytes() >= layout.segments * 8);
  int64_t stride = 1;
  for (int axis = layout.rank; axis-- > 0;) {
    FUZZ_CHECK(layout.dims[axis] > 1 && layout.strides[axis] == stride);
    FUZZ_CHECK(axis == 0 || layout.reduced[axis] != layout.reduced[axis - 1]);
    stride *= layout.dims[axis];
  }
}

void CheckRanges(const Plan& plan) {
  const auto& layout = plan.layout();
  FUZZ_CHECK(plan.range_count() >= 1);
  const bool all = plan.range_count() <= kMaxRangesChecked;
  const bool mark = all && layout.segments * layout.tiles <= kMaxItemsMarked;
  std::vector<bool> seen(mark ? static_cast<size_t>(layout.segments * layout.tiles) : 0);
  int64_t items = 0, last_begin = 0;
  for (const int64_t index : tilewire::fuzz::Sample(plan.range_count(), kMaxRangesChecked)) {
    const Range r = plan.range(index);
    FUZZ_CHECK(0 <= r.segment_begin && r.segment_begin < r.segment_end && r.segment_end <= layout.segments);
    FUZZ_CHECK(0 <= r.tile_begin && r.tile_begin < r.tile_end && r.tile_end <= layout.tiles);
    FUZZ_CHECK(last_begin <= r.byte_begin && r.byte_begin < r.byte_end &&
               r.byte_end <= plan.operand().bytes());
    last_begin = r.byte_begin;
    items += r.items();
    if (!mark) continue;
    for (int64_t s = r.segment_begin; s < r.segment_end; ++s) {
      for (int64_t t = r.tile_begin; t < r.tile_end; ++t) {
        FUZZ_CHECK(!seen[static_cast<size_t>(s * layout.tiles + t)]);
        seen[static_cast<size_t>(s * layout.tiles + t)] = true;
      }
    }
  }
  if (all) FUZZ_CHECK(items == layout.segments * layout.tiles);
}

/// Operand bytes: small numbers, so that nothing is NaN or infinite by itself.
std::vector<uint8_t> Pattern(int64_t bytes, uint8_t seed) {
  std::vector<uint8_t> out(static_cast<size_t>(bytes));
  for (uint8_t& byte : out) byte = seed = static_cast<uint8_t>(seed * 37 + 11) & 0x3f;
  return out;
}

/// Every range computed with all bytes outside it spoilt, in pieces; the same bits as over intact operands at
/// once.
void CheckBytes(const Plan& plan, tilewire::fuzz::Input* input) {
  const int64_t bytes = plan.operand().bytes();
  if (bytes > (input->Below(16) == 1 ? kMaxBytesComputedRarely : kMaxBytesComputed)) return;
  const std::vector<uint8_t> a = Pattern(bytes, input->Byte()), b = Pattern(bytes, input->Byte());
  const auto& layout = plan.layout();
  std::vector<double> sums(static_cast<size_t>(plan.scratch_bytes() / 8), -1), pieces = sums;
  for (int64_t index = 0; index < plan.range_count(); ++index) {
    const Range r = plan.range(index);
    std::vector<uint8_t> spoilt_a(a.size(), 0xff), spoilt_b(b.size(), 0xfe);
    const auto begin = static_cast<size_t>(r.byte_begin),
               count = static_cast<size_t>(r.byte_end - r.byte_begin);
    std::memcpy(spoilt_a.data() + begin, a.data() + begin, count);
    std::memcpy(spoilt_b.data() + begin, b.data() + begin, count);
    const int64_t half = input->Byte() * r.items() / 256;
    HostRange(plan, r, half, r.items(), spoilt_a.data(), spoilt_b.data(), pieces.data());
    HostRange(plan, r, 0, half, spoilt_a.data(), spoilt_b.data(), pieces.data());
    HostRange(plan, r, 0, r.items(), a.data(), b.data(), sums.data());
  }
  const auto same = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  };
  FUZZ_CHECK(same(sums, pieces));
  for (const double sum : sums) FUZZ_CHECK(sum >= 0);
  std::vector<double> result(static_cast<size_t>(layout.segments), -1), again = result;
  HostFinish(plan, 0, layout.segments, sums.data(), result.data());
  const int64_t half = layout.segments / 2;
  HostFinish(plan, half, layout.segments, pieces.data(), again.data());
  HostFinish(plan, 0, half, pieces.data(), again.data());
  FUZZ_CHECK(same(result, again));
  for (const double value : result) FUZZ_CHECK(value >= 0 && std::isfinite(value));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilewire::fuzz::Input input(data, size);
  const int dtype = 1 + input.Below(15);  // before the extents on every compiler
  const auto spec = tilewire::MakeSpec(dtype, input.Dims());
  if (!spec) return 0;
  const std::vector<int32_t> axes = input.Axes();
  const auto plan = Plan::Make(*spec, axes, static_cast<tilewire::rmse::Output>(input.Below(3)));
  if (!plan) {
    tilewire::fuzz::CheckRefusal(plan.error());
    return 0;
  }
  FUZZ_CHECK(tilewire::IsReal(spec->dtype) && tilewire::NormalizeAxes(axes, spec->shape.rank()));
  CheckLayout(*plan);
  CheckRanges(*plan);
  CheckBytes(*plan, &input);
  return 0;
}

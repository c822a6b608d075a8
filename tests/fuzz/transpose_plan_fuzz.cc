// transpose::Plan: bands partition the input, read no byte outside theirs, and together give the permutation
// that an element-by-element walk gives.
#include <cstring>

#include "kernels/transpose/transpose.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using tilewire::transpose::Plan;
using tilewire::transpose::Range;

constexpr int64_t kMaxRangesChecked = 2000;
constexpr int64_t kMaxBytesComputed = 1 << 16;
// Small arrays have one band; now and then a larger one is worth its time, but libFuzzer is better off with
// speed.
#if TILEWIRE_FUZZ_SMALL
constexpr int64_t kMaxBytesComputedRarely = kMaxBytesComputed;
#else
constexpr int64_t kMaxBytesComputedRarely = 12 << 20;
#endif
constexpr int64_t kMaxElementsCompared = 1 << 14;

int64_t BoxBytes(const Plan& plan, const Range& r) {
  int64_t bytes = plan.layout().element_bytes;
  for (int axis = 0; axis < plan.layout().rank; ++axis) {
    FUZZ_CHECK(r.dims[axis] >= 1 && r.dims[axis] <= plan.layout().dims[axis]);
    bytes *= r.dims[axis];
  }
  return bytes;
}

void CheckRanges(const Plan& plan) {
  FUZZ_CHECK(plan.range_count() >= 1);
  const bool all = plan.range_count() <= kMaxRangesChecked;
  int64_t end = 0;
  for (const int64_t index : tilewire::fuzz::Sample(plan.range_count(), kMaxRangesChecked)) {
    const Range r = plan.range(index);
    FUZZ_CHECK(all ? r.byte_begin == end : r.byte_begin >= end);
    FUZZ_CHECK(r.byte_end > r.byte_begin && r.byte_end <= plan.input().bytes());
    FUZZ_CHECK(BoxBytes(plan, r) == r.byte_end - r.byte_begin);
    FUZZ_CHECK(r.in_offset * plan.layout().element_bytes == r.byte_begin);
    end = r.byte_end;
  }
  FUZZ_CHECK(end == plan.input().bytes());
}

/// Straight from the definition: where output element `element` stands in the input.
int64_t SourceOf(const Plan& plan, const std::vector<int>& order, int64_t element) {
  const auto& shape = plan.input().shape;
  int64_t strides[tilewire::kMaxRank] = {};
  int64_t stride = 1;
  for (int axis = shape.rank(); axis-- > 0; stride *= shape.dim(axis)) strides[axis] = stride;
  int64_t from = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t extent = plan.result().shape.dim(static_cast<int>(i));
    from += element % extent * strides[order[i]];
    element /= extent;
  }
  return from;
}

using Blob = std::vector<uint8_t>;

/// Compares output elements [begin, end), or an even sample of them.
void CheckElements(const Plan& plan, const std::vector<int>& order, const Blob& in, const Blob& out,
                   int64_t begin, int64_t end) {
  const int64_t size = tilewire::SizeOf(plan.input().dtype);
  for (const int64_t i : tilewire::fuzz::Sample(end - begin, kMaxElementsCompared)) {
    const int64_t from = SourceOf(plan, order, begin + i);
    FUZZ_CHECK(std::memcmp(out.data() + (begin + i) * size, in.data() + from * size,
                           static_cast<size_t>(size)) == 0);
  }
}

void CheckBytes(const Plan& plan, const std::vector<int>& order, tilewire::fuzz::Input* input) {
  const int64_t bytes = plan.input().bytes(), size = tilewire::SizeOf(plan.input().dtype);
  if (bytes > (input->Below(16) == 1 ? kMaxBytesComputedRarely : kMaxBytesComputed)) return;
  Blob in(static_cast<size_t>(bytes)), out(in.size(), 0xee);
  uint8_t seed = input->Byte();
  for (size_t i = 0; i < in.size(); ++i) in[i] = seed = static_cast<uint8_t>(seed * 37 + 11 + (i >> 8));
  for (int64_t index = 0; index < plan.range_count(); ++index) {
    const Range r = plan.range(index);
    Blob spoilt(in.size(), 0xff);
    std::copy(in.begin() + r.byte_begin, in.begin() + r.byte_end, spoilt.begin() + r.byte_begin);
    const int64_t items = HostItems(plan, r), half = input->Byte() * items / 256;
    FUZZ_CHECK(items >= 1);
    HostRange(plan, r, half, items, spoilt.data(), out.data());
    HostRange(plan, r, 0, half, spoilt.data(), out.data());
    if (plan.keeps_leading_axis())
      CheckElements(plan, order, in, out, r.byte_begin / size, r.byte_end / size);
  }
  CheckElements(plan, order, in, out, 0, plan.input().shape.elements());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilewire::fuzz::Input input(data, size);
  const int dtype = 1 + input.Below(15);  // before the extents on every compiler
  const auto spec = tilewire::MakeSpec(dtype, input.Dims());
  if (!spec) return 0;
  const int rank = spec->shape.rank();
  // Mostly a permutation: foreign axis lists are refused early and teach little.
  std::vector<int32_t> axes;
  if (input.Below(8) == 0) {
    axes = input.Axes();
  } else {
    for (int32_t axis = 0; axis < rank; ++axis) axes.push_back(input.Below(2) == 0 ? axis : axis - rank);
    for (size_t i = axes.size(); i > 1; --i)
      std::swap(axes[i - 1], axes[static_cast<size_t>(input.Below(static_cast<int>(i)))]);
  }
  const auto plan = Plan::Make(*spec, axes);
  if (!plan) {
    tilewire::fuzz::CheckRefusal(plan.error());
    return 0;
  }
  std::vector<int> order = *tilewire::NormalizeAxes(axes, rank);
  if (order.empty()) {
    for (int axis = rank; axis-- > 0;) order.push_back(axis);
  }
  FUZZ_CHECK(static_cast<int>(order.size()) == rank && plan->result().dtype == spec->dtype);
  for (size_t i = 0; i < order.size(); ++i) {
    FUZZ_CHECK(plan->result().shape.dim(static_cast<int>(i)) == spec->shape.dim(order[i]));
  }
  CheckRanges(*plan);
  CheckBytes(*plan, order, &input);
  return 0;
}

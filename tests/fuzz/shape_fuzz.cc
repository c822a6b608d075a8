// MakeSpec and NormalizeAxes: whatever the numbers, no overflow, and what is accepted is what was asked for.
#include "kernels/array/shape.h"

#include "tests/fuzz/fuzz_input.h"

namespace {

using tilewire::fuzz::CheckRefusal;

void CheckSpec(int dtype, const std::vector<int64_t>& dims) {
  const auto spec = tilewire::MakeSpec(dtype, dims);
  if (!spec) return CheckRefusal(spec.error());
  FUZZ_CHECK(static_cast<int>(spec->dtype) == dtype);
  FUZZ_CHECK(spec->shape.rank() <= tilewire::kMaxRank && std::ranges::equal(spec->shape.dims(), dims));
  __extension__ unsigned __int128 bytes = static_cast<unsigned>(tilewire::SizeOf(spec->dtype));
  for (const int64_t dim : dims) {
    FUZZ_CHECK(dim >= 1);
    bytes *= static_cast<uint64_t>(dim);
    FUZZ_CHECK(bytes <= static_cast<uint64_t>(tilewire::kMaxArrayBytes));
  }
  FUZZ_CHECK(static_cast<uint64_t>(spec->bytes()) == bytes);
  FUZZ_CHECK(!spec->shape.ToString().empty());
}

void CheckAxes(const std::vector<int32_t>& axes, int rank) {
  const auto normal = tilewire::NormalizeAxes(axes, rank);
  if (!normal) return CheckRefusal(normal.error());
  FUZZ_CHECK(normal->size() == axes.size());
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = (*normal)[i];
    FUZZ_CHECK(axis >= 0 && axis < rank && (axes[i] == axis || axes[i] == axis - rank));
    FUZZ_CHECK(!seen[static_cast<size_t>(axis)]);
    seen[static_cast<size_t>(axis)] = true;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilewire::fuzz::Input input(data, size);
  const int dtype = input.Below(4) == 0 ? static_cast<int>(input.Word(4)) : input.Below(17);
  CheckSpec(dtype, input.Dims());
  const int rank = input.Below(tilewire::kMaxRank + 1);
  CheckAxes(input.Axes(), rank);
  return 0;
}

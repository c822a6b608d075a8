// Cases of the operation whose results the host's own kernel gives: nothing is rounded, so that there is no
// other answer.
#include "kernels/transpose/problem.h"

namespace tilewire::transpose {
namespace {

using Bytes = std::vector<uint8_t>;

struct Case {
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;
};

/// Odd extents, unit axes, short and long fast axes, a kept leading axis, many axes.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {{}, {}},
      {{1}, {}},
      {{64, 64}, {1, 0}},
      {{127, 65}, {}},
      {{1000, 3}, {}},
      {{3, 1000}, {}},
      {{5, 33, 31}, {0, 2, 1}},
      {{7, 1, 13, 11}, {2, 0, 3, 1}},
      {{4, 6, 8, 10}, {3, 1, 2, 0}},
      {std::vector<int64_t>(12, 2), {11, 0, 10, 1, 9, 2, 8, 3, 7, 4, 6, 5}},
  };
  return cases;
}

PublishedData DataOf(const ArraySpec& spec, const std::vector<int32_t>& axes) {
  Bytes in(static_cast<size_t>(spec.bytes())), out(in.size());
  uint32_t state = 12345;
  for (uint8_t& byte : in) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  const Plan plan = Plan::Make(spec, axes).value();
  for (int64_t i = 0; i < plan.range_count(); ++i) {
    const Range range = plan.range(i);
    HostRange(plan, range, 0, HostItems(plan, range), in.data(), out.data());
  }
  return {.operands = {std::move(in)}, .answers = {{{{"axes", axes}}, "", {std::move(out)}}}};
}

}  // namespace

std::vector<PublishedCase> PublishedCases() {
  std::vector<PublishedCase> published;
  for (const DTypeInfo& dtype : AllDTypes()) {
    for (const Case& test : Cases()) {
      const ArraySpec spec = MakeSpec(dtype.dtype, test.dims).value();
      std::string name = "transpose/" + std::string(dtype.name) + "/" + spec.shape.ToString() + " axes";
      for (const int32_t axis : test.axes) name += " " + std::to_string(axis);
      if (test.axes.empty()) name += " reversed";
      published.push_back({std::move(name), {spec}, [spec, &test] { return DataOf(spec, test.axes); }});
    }
  }
  return published;
}

}  // namespace tilewire::transpose

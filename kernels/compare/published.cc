// The golden vectors as cases of the operation.
#include <array>
#include <cstring>

#include "kernels/compare/golden.h"
#include "kernels/compare/problem.h"

namespace tilewire::compare {
namespace {

using Bytes = std::vector<uint8_t>;

PublishedData DataOf(const GoldenCase& golden) {
  const auto bytes = static_cast<size_t>(golden.n * SizeOf(golden.dtype));
  PublishedData data{.operands = {Bytes(bytes), Bytes(bytes)}, .answers = {}};
  FillGolden(golden, data.operands[0].data(), data.operands[1].data());
  std::vector<Bytes> all;
  for (int32_t metric = 0; metric < kMetrics; ++metric) {
    Bytes value(sizeof(uint64_t));
    std::memcpy(value.data(), &golden.expected[metric], value.size());
    all.push_back(std::move(value));
  }
  data.answers.push_back({{}, "", std::move(all)});
  return data;
}

}  // namespace

std::vector<PublishedCase> PublishedCases() {
  std::vector<PublishedCase> cases;
  for (const GoldenCase& golden : GoldenCases()) {
    const ArraySpec spec = MakeSpec(golden.dtype, std::array{golden.n}).value();
    cases.push_back(
        {"compare/" + std::string(golden.name), {spec, spec}, [&golden] { return DataOf(golden); }});
  }
  return cases;
}

}  // namespace tilewire::compare

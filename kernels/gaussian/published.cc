// The golden vectors as cases of the operation.
#include <array>

#include "kernels/gaussian/golden.h"
#include "kernels/gaussian/problem.h"

namespace tilewire::gaussian {
namespace {

using Bytes = std::vector<uint8_t>;

PublishedData DataOf(const GoldenCase& golden) {
  const auto bytes = static_cast<size_t>(kGoldenElements * SizeOf(golden.dtype));
  Bytes input(bytes), result(bytes);
  FillGoldenInput(golden, input.data());
  FillGoldenResult(golden, result.data());
  PublishedAnswer answer{{{"mean", golden.mean}, {"stddev", golden.stddev}}, "element", {std::move(result)}};
  return {.operands = {std::move(input)}, .answers = {std::move(answer)}};
}

}  // namespace

std::vector<PublishedCase> PublishedCases() {
  std::vector<PublishedCase> cases;
  for (const GoldenCase& golden : GoldenCases()) {
    const ArraySpec spec = MakeSpec(golden.dtype, std::array<int64_t, 1>{kGoldenElements}).value();
    cases.push_back({"gaussian/" + std::string(golden.name), {spec}, [&golden] { return DataOf(golden); }});
  }
  return cases;
}

}  // namespace tilewire::gaussian

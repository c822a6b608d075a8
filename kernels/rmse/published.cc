// The golden vectors as cases of the operation.
#include <array>
#include <cstring>

#include "kernels/rmse/golden.h"
#include "kernels/rmse/problem.h"

namespace tilewire::rmse {
namespace {

using Bytes = std::vector<uint8_t>;

PublishedAnswer Answer(Output output, const char* name, uint64_t bits) {
  Bytes value(sizeof(bits));
  std::memcpy(value.data(), &bits, sizeof(bits));
  return {{{"output", static_cast<int64_t>(output)}}, name, {std::move(value)}};
}

PublishedData DataOf(const GoldenCase& golden) {
  const auto bytes = static_cast<size_t>(golden.n * SizeOf(golden.dtype));
  PublishedData data{.operands = {Bytes(bytes), Bytes(bytes)}, .answers = {}};
  FillGolden(golden, data.operands[0].data(), data.operands[1].data());
  data.answers = {Answer(Output::kRmse, "rmse", golden.rmse), Answer(Output::kMse, "mse", golden.mse),
                  Answer(Output::kSumSquares, "sum of squares", golden.sum_squares)};
  return data;
}

}  // namespace

std::vector<PublishedCase> PublishedCases() {
  std::vector<PublishedCase> cases;
  for (const GoldenCase& golden : GoldenCases()) {
    const ArraySpec spec = MakeSpec(golden.dtype, std::array{golden.n}).value();
    cases.push_back({"rmse/" + std::string(golden.name), {spec, spec}, [&golden] { return DataOf(golden); }});
  }
  return cases;
}

}  // namespace tilewire::rmse

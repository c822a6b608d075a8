// Which calls a load makes: operations by weight, inputs, traces; the same for the same seed.
#include <gtest/gtest.h>

#include "tests/unit/load_testing.h"

namespace tilewire::load {
namespace {

TEST(LoadMix, TheMixFollowsTheWeightsAndTheSeed) {
  const auto sequence = [](uint64_t seed) {
    LoadOptions options = Options(1);
    options.weights = {3, 1};
    options.inputs = 5;
    options.seed = seed;
    options.requests = 4000;
    std::vector<std::pair<uint32_t, uint32_t>> made;
    RunLoad(options,
            [&](const Request& request, const std::stop_token&) {
              made.emplace_back(request.operation, request.input);
              return Right();
            },
            {});
    return made;
  };
  const auto first = sequence(1);
  EXPECT_EQ(first, sequence(1));
  EXPECT_NE(first, sequence(2));
  int of_first = 0, inputs[5] = {};
  for (const auto& [operation, input] : first) {
    ASSERT_LT(input, 5u);
    of_first += operation == 0;
    ++inputs[input];
  }
  EXPECT_NEAR(of_first, 3000, 170);  // 6 standard deviations
  for (const int count : inputs) EXPECT_NEAR(count, 800, 160);
}

TEST(LoadMix, AFewCallsAreTracedAndFewKept) {
  LoadOptions options = Options(1);
  options.requests = 5000;
  int traced = 0;
  const LoadResult result = RunLoad(options,
                                    [&](const Request& request, const std::stop_token&) {
                                      traced += request.trace;
                                      Answer answer = Right();
                                      answer.reply = client::Reply();
                                      if (request.trace) answer.reply->trace = client::Trace();
                                      return answer;
                                    },
                                    {});
  EXPECT_EQ(traced, 13) << "1, 2, 4 … 4096";
  EXPECT_EQ(result.measured.traces.size(), 8u);
}

}  // namespace
}  // namespace tilewire::load

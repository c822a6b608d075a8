#include "kernels/bench/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewire::bench {
namespace {

using ::testing::ElementsAre;

Parsed Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "tilewire_kernel_bench");
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  Parsed parsed = ParseCommandLine(static_cast<int>(words.size()), words.data());
  ::testing::internal::GetCapturedStderr();
  ::testing::internal::GetCapturedStdout();
  return parsed;
}

TEST(BenchOptions, Defaults) {
  const Parsed parsed = Parse({});
  ASSERT_FALSE(parsed.leave);
  EXPECT_EQ(parsed.options.filter, "");
  EXPECT_EQ(parsed.options.device, 0);
  EXPECT_GE(parsed.options.cases.permutations, 200);
  EXPECT_EQ(parsed.options.cases.threads.front(), 1);
  EXPECT_THAT(parsed.options.run.modes, ElementsAre(Mode::kCold, Mode::kHot, Mode::kCompletion));
}

TEST(BenchOptions, Values) {
  const Parsed parsed =
      Parse({"^rmse/", "--json", "a.json", "--bytes", "8GiB", "--noise", "2", "--threads", "8,1,4,4",
             "--cold-only", "--max-runs", "3", "--seed", "42", "--cublas", "/x/libcublas.so.13"});
  ASSERT_FALSE(parsed.leave);
  const Options& options = parsed.options;
  EXPECT_EQ(options.filter, "^rmse/");
  EXPECT_EQ(options.json, "a.json");
  EXPECT_EQ(options.max_bytes, int64_t{8} << 30);
  EXPECT_DOUBLE_EQ(options.run.rule.noise, 0.02);
  EXPECT_EQ(options.run.rule.max_runs, 3);
  EXPECT_LE(options.run.rule.min_runs, 3);
  EXPECT_THAT(options.cases.threads, ElementsAre(1, 4, 8));
  EXPECT_THAT(options.run.modes, ElementsAre(Mode::kCold));
  EXPECT_EQ(options.cases.seed, 42U);
  EXPECT_EQ(options.cases.cublas, "/x/libcublas.so.13");
  EXPECT_EQ(Parse({"--filter", "x"}).options.filter, "x");
  EXPECT_THAT(Parse({"--hot-only"}).options.run.modes, ElementsAre(Mode::kHot, Mode::kCompletion));
}

TEST(BenchOptions, BadUsageLeavesWithTwo) {
  const std::vector<std::vector<const char*>> wrong = {{"--nonsense"},
                                                       {"one", "two"},
                                                       {"--filter", "("},
                                                       {"["},
                                                       {"--device", "-1"},
                                                       {"--device", "x"},
                                                       {"--bytes", "0"},
                                                       {"--bytes", "many"},
                                                       {"--noise", "0"},
                                                       {"--max-runs", "0"},
                                                       {"--min-time", "-1"},
                                                       {"--min-time", "3", "--max-time", "2"},
                                                       {"--threads", "0"},
                                                       {"--threads", "two"},
                                                       {"--permutations", "-1"},
                                                       {"--json"},
                                                       {"--cold-only", "--hot-only"}};
  for (const auto& words : wrong) {
    const Parsed parsed = Parse(words);
    EXPECT_TRUE(parsed.leave) << words[0];
    EXPECT_EQ(parsed.exit_code, 2) << words[0];
  }
}

TEST(BenchOptions, HelpAndVersionLeaveWithZero) {
  for (const char* word : {"--help", "--version"}) {
    const Parsed parsed = Parse({word});
    EXPECT_TRUE(parsed.leave);
    EXPECT_EQ(parsed.exit_code, 0);
  }
}

}  // namespace
}  // namespace tilewire::bench

#include "server/ops/failure_fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/ops/access_log.h"
#include "server/ops/logging.h"
#include "tests/unit/waiting.h"

namespace tilewire::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using tilewire::testing::Eventually;

rpc::CallRecord Failed(const std::string& caller, const std::string& method = "Kernels.Rmse") {
  rpc::CallRecord record{.method = method, .caller = caller};
  record.status = Status(Code::kInvalidArgument, "BAD_VALUE", "no");
  return record;
}

class FailureFoldTest : public ::testing::Test {
 protected:
  int Lines(FailureFold* fold, const rpc::CallRecord& record, int calls) {
    int lines = 0;
    for (int i = 0; i < calls; ++i) lines += fold->Admit(record) ? 1 : 0;
    return lines;
  }
  size_t told() {
    const MutexLock lock(mutex_);
    return told_.size();
  }
  FailureFold::Tell Teller() {
    return [this](const FailureKind& kind, uint64_t folded) {
      const MutexLock lock(mutex_);
      told_.emplace_back(kind.caller + "/" + kind.method, folded);
    };
  }

  ManualTime time_;
  Mutex mutex_;
  std::vector<std::pair<std::string, uint64_t>> told_;
};

TEST_F(FailureFoldTest, FewHaveALineEachAndNoCount) {
  {
    FailureFold fold(Teller(), &time_);
    EXPECT_EQ(Lines(&fold, Failed("a"), FailureFold::kLines), FailureFold::kLines);
  }
  EXPECT_EQ(told(), 0u);
}

TEST_F(FailureFoldTest, ManyAreCountedWhenTheSecondIsOver) {
  FailureFold fold(Teller(), &time_);
  EXPECT_EQ(Lines(&fold, Failed("a"), 1000), FailureFold::kLines);
  EXPECT_EQ(Lines(&fold, Failed("b"), 30), FailureFold::kLines);
  EXPECT_EQ(Lines(&fold, Failed("c"), 1), 1);
  EXPECT_EQ(told(), 0u);
  time_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(Eventually([&] { return told() == 2; }));
  EXPECT_THAT(told_, ElementsAre(Pair("a/Kernels.Rmse", 1000 - FailureFold::kLines),
                                 Pair("b/Kernels.Rmse", 30 - FailureFold::kLines)));
  EXPECT_EQ(Lines(&fold, Failed("a"), 3), 3) << "the next second begins anew";
}

TEST_F(FailureFoldTest, WhatIsCountedIsToldAtTheEnd) {
  {
    FailureFold fold(Teller(), &time_);
    Lines(&fold, Failed("a"), FailureFold::kLines + 5);
  }
  EXPECT_THAT(told_, ElementsAre(Pair("a/Kernels.Rmse", 5)));
}

TEST_F(FailureFoldTest, NamesThatClientsChooseAreBounded) {
  constexpr int kNames = 5000;
  int lines = 0;
  {
    FailureFold fold(Teller(), &time_);
    for (int i = 0; i < kNames; ++i) lines += fold.Admit(Failed("a", "/x/" + std::to_string(i))) ? 1 : 0;
  }
  constexpr int kMost = static_cast<int>(FailureFold::kMostKinds) + FailureFold::kLines;
  EXPECT_EQ(lines, kMost);
  EXPECT_THAT(told_, ElementsAre(Pair("/", kNames - kMost)));
}

TEST(FoldedCalls, AreALineWithWhatTheyShare) {
  ::testing::internal::CaptureStderr();
  InitLogging("text", "info");
  LogFolded(
      {.caller = "anonymous 1.2.3.4", .method = "Kernels.Rmse", .status = "UNAVAILABLE", .reason = "BUSY"},
      7);
  LogFolded({}, 9);
  FlushLog();
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("calls folded calls=7 method=Kernels.Rmse status=UNAVAILABLE reason=BUSY "
                               "caller=\"anonymous 1.2.3.4\"\n"));
  EXPECT_THAT(lines, HasSubstr("calls folded calls=9\n"));
}

}  // namespace
}  // namespace tilewire::ops

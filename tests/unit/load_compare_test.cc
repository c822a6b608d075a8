// Whether one result is worse than another, and which are not alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/compare.h"
#include "client/load/tables.h"
#include "tests/unit/load_result_testing.h"

namespace tilewire::load {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

bool Regression(const json& a, const json& b, const CompareOptions& options = {}) {
  const auto comparison = Compare(a, b, options);
  EXPECT_TRUE(comparison) << comparison.error().ToString();
  bool any = false;
  for (const auto& row : comparison->rows) any = any || row.regression;
  EXPECT_EQ(any, comparison->regression);
  EXPECT_THAT(ComparisonText(*comparison), HasSubstr(any ? "REGRESSION" : "no regression"));
  return comparison->regression;
}

TEST(LoadCompare, VerdictsFollowTheThresholds) {
  const json before = ResultOf(1);
  EXPECT_FALSE(Regression(before, before));
  EXPECT_FALSE(Regression(before, ResultOf(1.05)));
  EXPECT_FALSE(Regression(before, ResultOf(0.5))) << "better is no regression";
  EXPECT_TRUE(Regression(before, ResultOf(1.2)));
  EXPECT_FALSE(Regression(before, ResultOf(1.2), {.threshold = 0.3, .tail_threshold = 0.3}));
  EXPECT_TRUE(Regression(before, ResultOf(1.2), {.threshold = 0.3, .tail_threshold = 0.1})) << "by the tail";
  EXPECT_TRUE(Regression(before, ResultOf(1, 1)));
  EXPECT_FALSE(Regression(before, ResultOf(1, 0, 1))) << "one call of a thousand and one";
  EXPECT_TRUE(Regression(before, ResultOf(1, 0, 10)));
  EXPECT_FALSE(Regression(ResultOf(1, 0, 10), ResultOf(1, 0, 10)));
  json slower = before;
  slower["operations"][1]["calls_per_second"] =
      before["operations"][1]["calls_per_second"].get<double>() * 0.8;
  EXPECT_TRUE(Regression(before, slower));
  json fewer = before;
  fewer["operations"].erase(1);
  EXPECT_TRUE(Regression(before, fewer)) << "an operation is gone";
  EXPECT_FALSE(Regression(fewer, before)) << "a new one is no regression";
}

TEST(LoadCompare, RampsAndStudiesToo) {
  json ramp = ResultOf(1);
  ramp["mode"] = {{"type", "ramp"}, {"best_rate", 100.0}};
  json worse = ramp;
  worse["mode"]["best_rate"] = 80.0;
  EXPECT_TRUE(Regression(ramp, worse));
  EXPECT_FALSE(Regression(worse, ramp));
  json study = ResultOf(1);
  study["kind"] = "study";
  study["study"] = {{{"operation", "rmse"},
                     {"bytes", 8},
                     {"block_bytes", 0},
                     {"lanes", 0},
                     {"connections", 1},
                     {"overlap", true},
                     {"bytes_per_second", 100.0},
                     {"p50_us", 1}}};
  json slower = study;
  slower["study"][0]["bytes_per_second"] = 50.0;
  EXPECT_TRUE(Regression(study, slower));
  EXPECT_FALSE(Regression(slower, study));
  slower["study"][0]["overlap"] = false;
  EXPECT_TRUE(Regression(study, slower)) << "the point is gone";
}

TEST(LoadCompare, NotesWhatDiffersAndRefusesWhatIsNoResult) {
  const json before = ResultOf(1);
  json other = before;
  other["server"]["device"] = "cuda:0";
  other["generator"]["bottleneck"] = true;
  const auto comparison = Compare(before, other, {.anyway = true});
  ASSERT_TRUE(comparison);
  EXPECT_THAT(comparison->notes, Contains(HasSubstr("device differs: \"cpu\" and \"cuda:0\"")));
  EXPECT_THAT(comparison->notes, Contains(HasSubstr("generator was the bottleneck")));
  for (json wrong :
       {json(3), json::object(), json{{"schema", "tilewire-load/9"}}, json{{"schema", "tilewire-load/1"}}}) {
    EXPECT_FALSE(Compare(before, wrong, {}));
    EXPECT_FALSE(Compare(wrong, before, {}));
  }
  json broken = before;
  broken["operations"][0]["latency_us"] = "fast";
  EXPECT_FALSE(Compare(before, broken, {}));
  other["kind"] = "study";
  EXPECT_FALSE(Compare(before, other, {}));
}

TEST(LoadCompare, RefusesWhatIsNotAlikeAndSaysWhatDiffers) {
  const json before = ResultOf(1);
  EXPECT_TRUE(Unlike(before, before).empty());
  const std::pair<const char*, json> changes[] = {{"/server/device", "cuda:0"},
                                                  {"/server/device_name", "another"},
                                                  {"/server/version", "9.9.9"},
                                                  {"/server/numeric_versions", {"rmse.2"}},
                                                  {"/server/lanes", 77},
                                                  {"/client/processor", "another"},
                                                  {"/client/cores", 1234},
                                                  {"/mode/callers", 7},
                                                  {"/scenario/inputs", 9},
                                                  {"/scenario/operations/0/shape", {65}},
                                                  {"/scenario/operations/1/weight", 50},
                                                  {"/scenario/operations/1/access", "region"},
                                                  {"/scenario/seconds", 100},
                                                  {"/scenario/requests", 5}};
  for (const auto& [path, value] : changes) {
    json other = before;
    other[json::json_pointer(path)] = value;
    const auto refused = Compare(before, other, {});
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().reason(), "UNLIKE");
    EXPECT_EQ(Unlike(before, other).size(), 1u) << path;
    const auto anyway = Compare(before, other, {.anyway = true});
    ASSERT_TRUE(anyway) << path;
    EXPECT_EQ(anyway->notes.size(), 1u) << path;
    const std::string field = std::string(path).substr(std::string(path).rfind('/') + 1);
    if (field != "requests" && std::string(path).find("operations") == std::string::npos &&
        std::string(path).find("mode") == std::string::npos)
      EXPECT_THAT(std::string(refused.error().message()), HasSubstr(field));
  }
  json same = before;
  same["seed"] = 99;
  same["scenario"]["name"] = "another";
  same["scenario"]["seconds"] = 14;
  same["server"].erase("numeric_versions");  // an older file
  same["server"]["instance"] = "another";
  same["generator"].erase("checking_share");
  EXPECT_TRUE(Compare(before, same, {}));
  EXPECT_TRUE(Compare(same, before, {}));
}

TEST(LoadCompare, ATailThatOneOfThemDoesNotKnowDecidesNothing) {
  const json before = ResultOf(1);
  json few = ResultOf(1);
  for (json& stat : few["operations"]) stat["latency_us"].erase("p99");
  few["total"]["latency_us"].erase("p99");
  EXPECT_FALSE(Regression(before, few));
  EXPECT_FALSE(Regression(few, before));
}

TEST(LoadCompare, StudiesOfBeforeThereWereWaysAreOfTheWireAndErrorsCount) {
  json old = ResultOf(1);
  old["kind"] = "study";
  old["study"] = {{{"operation", "rmse"},
                   {"bytes", 8},
                   {"block_bytes", 0},
                   {"lanes", 0},
                   {"connections", 1},
                   {"overlap", true},
                   {"bytes_per_second", 100.0},
                   {"p50_us", 1}}};
  json now = old;
  now["study"][0]["via"] = "wire";
  now["scenario"]["via"] = {"wire"};
  EXPECT_FALSE(Regression(old, now));
  json died = now;
  died["total"]["errors"] = {{"UNAVAILABLE", 30}};
  EXPECT_TRUE(Regression(now, died));
  const auto comparison = Compare(now, died, {});
  for (const auto& row : comparison->rows) EXPECT_NE(row.what, "wrong answers");
  EXPECT_THAT(ComparisonText(*comparison), HasSubstr("new  REGRESSION")) << "errors where there were none";
  now["scenario"]["via"] = {"region", "wire"};
  EXPECT_FALSE(Compare(old, now, {}));
  EXPECT_TRUE(Compare(old, now, {.anyway = true}));
}

}  // namespace
}  // namespace tilewire::load

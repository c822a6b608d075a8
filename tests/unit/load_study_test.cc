// The overlap study over calls whose cost the test decides.
#include "client/load/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/tables.h"

namespace tilewire::load {
namespace {

using ::testing::HasSubstr;

StudyPoint Point(uint64_t bytes, Tuning tuning, double rate) {
  StudyPoint point{.bytes = bytes, .tuning = tuning};
  point.stats.good = 1;
  point.stats.bytes = bytes;
  point.seconds = static_cast<double>(bytes) / rate;
  return point;
}

TEST(LoadStudy, RecommendsTheCheapestOfTheBest) {
  EXPECT_FALSE(Recommend({}));
  const std::vector<StudyPoint> points{
      Point(1000, {.connections = 1}, 1e12),  // a smaller array: does not count
      Point(5000, {.connections = 1}, 5e9),
      Point(5000, {.sequential = true, .connections = 1}, 4e9),
      Point(5000, {.connections = 2}, 9.8e9),
      Point(5000, {.sequential = true, .connections = 2}, 7e9),
      Point(5000, {.lanes = 4, .connections = 2}, 9.9e9),
      Point(5000, {.connections = 8}, 10e9),
      Point(5000, {.sequential = true, .connections = 8}, 99e9),  // without overlap: no candidate
  };
  const auto best = Recommend(points);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->tuning.connections, 2u);
  EXPECT_EQ(best->tuning.lanes, 0u);
  EXPECT_EQ(best->bytes, 5000u);
  EXPECT_NEAR(best->bytes_per_second, 9.8e9, 1);
  EXPECT_NEAR(best->best_bytes_per_second, 10e9, 1);
  EXPECT_NEAR(best->serial_bytes_per_second, 7e9, 1);
}

TEST(LoadStudy, EveryConfigurationBothWaysInTurns) {
  StudyOptions options;
  options.operation = "transpose";
  options.sizes = {1000, 4096};
  options.connections = {1, 2};
  options.blocks = {0, 65536};
  options.lanes = {0, 3};
  options.seconds = 0.001;
  std::vector<Tuning> made;
  int points = 0;
  const StudyResult study = RunStudy(
      options,
      [&](size_t, uint32_t input, const Tuning& tuning, const std::stop_token&) {
        EXPECT_LT(input, options.inputs);
        made.push_back(tuning);
        return Answer{.right = true, .bytes = 100};
      },
      {},
      [&](size_t done, size_t all) {
        EXPECT_EQ(all, 16u);
        EXPECT_EQ(done, static_cast<size_t>(points++));
      });
  EXPECT_EQ(points, 16);
  ASSERT_EQ(study.points.size(), 32u);
  for (size_t i = 0; i < study.points.size(); i += 2) {
    EXPECT_TRUE(study.points[i].overlap());
    EXPECT_FALSE(study.points[i + 1].overlap());
    EXPECT_EQ(study.points[i].stats.good, study.points[i + 1].stats.good) << "as many calls each way";
    EXPECT_GE(study.points[i].stats.good, 3u);
  }
  for (size_t i = 0; i + 1 < made.size(); i += 2) EXPECT_NE(made[i].sequential, made[i + 1].sequential) << i;
}

TEST(LoadStudy, ShapesFitTheSizes) {
  StudyOptions options;
  for (const uint64_t size : {uint64_t{1}, uint64_t{4}, uint64_t{100}, uint64_t{4096}, uint64_t{1} << 26}) {
    for (const char* operation : {"rmse", "transpose", "gaussian-pdf"}) {
      options.operation = operation;
      const auto spec = StudyOperation(options, size);
      ASSERT_TRUE(spec) << size;
      EXPECT_STREQ(spec->kind(), operation);
      EXPECT_LE(spec->operand.bytes(), std::max<int64_t>(static_cast<int64_t>(size), 4) * 2);
      EXPECT_GE(spec->operand.bytes() * 2, static_cast<int64_t>(size));
    }
  }
  options.operation = "gaussian-pdf";
  options.dtype = DType::kI8;
  EXPECT_FALSE(StudyOperation(options, 64)) << "no such kernel";
}

TEST(LoadStudy, EndsWithWhatItHas) {
  StudyOptions options;
  options.sizes = {4096};
  options.connections = {1, 2, 3};
  options.seconds = 0.001;
  int made = 0;
  const auto dying = [&](size_t, uint32_t, const Tuning&, const std::stop_token&) {
    return ++made <= 10 ? Answer{.right = true, .bytes = 100}
                        : Answer{.status = Status(Code::kUnavailable, "", "gone")};
  };
  const StudyResult lost = RunStudy(options, dying, {});
  EXPECT_TRUE(lost.lost);
  EXPECT_LT(lost.points.size(), 6u);
  EXPECT_GE(lost.points.size(), 2u);
  std::stop_source stop;
  stop.request_stop();
  made = 0;
  EXPECT_TRUE(RunStudy(options, dying, stop.get_token()).interrupted);
}

TEST(LoadStudy, ItsResultSaysWhatToDo) {
  StudyOptions options;
  options.sizes = {4096};
  options.connections = {1};
  options.seconds = 0.001;
  const StudyResult study = RunStudy(options,
                                     [](size_t, uint32_t, const Tuning&, const std::stop_token&) {
                                       Answer answer{.right = true, .bytes = 100, .reply = client::Reply()};
                                       answer.reply->timing.bottleneck = "receive";
                                       answer.reply->timing.overlap = 1.5;
                                       return answer;
                                     },
                                     {});
  ServerFacts server{"localhost:1", {}, client::ServerCeilings{"cuda:0", {{"h2d", 1e9}}}};
  server.info.devices = {{.id = "cuda:0", .name = "a GPU"}};
  const auto json =
      StudyJson(options, {StudyOperation(options, 4096).value()}, server, study, "2026-01-31T12:00:00Z", 1);
  EXPECT_EQ(json["kind"], "study");
  ASSERT_EQ(json["study"].size(), 2u);
  EXPECT_EQ(json["study"][0]["overlap"], true);
  EXPECT_EQ(json["study"][0]["overlap_factor"], 1.5);
  EXPECT_EQ(json["study"][0]["bottleneck"], "receive");
  EXPECT_EQ(json["recommendation"]["connections"], 1);
  const std::string text = ResultText(json);
  EXPECT_THAT(text, HasSubstr("Use 1 connection, the server's own block size"));
  EXPECT_THAT(text, HasSubstr("The bottleneck is receiving (gRPC and the socket)"));
  EXPECT_THAT(text, HasSubstr("of what a copy from pinned memory to the device reaches here (1 GB/s)"));
}

}  // namespace
}  // namespace tilewire::load

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
  EXPECT_FALSE(Recommend({}, Via::kWire));
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
  EXPECT_FALSE(Recommend(points, Via::kRegion)) << "nothing went that way";
  const auto best = Recommend(points, Via::kWire);
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
  const StudyResult study =
      RunStudy(options,
               {.call =
                    [&](const StudyPlace&, uint32_t input, const Tuning& tuning, const std::stop_token&) {
                      EXPECT_LT(input, options.inputs);
                      made.push_back(tuning);
                      return Answer{.right = true, .bytes = 100};
                    }},
               {}, [&](size_t done, size_t all) {
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
  const auto dying = [&](const StudyPlace&, uint32_t, const Tuning&, const std::stop_token&) {
    return ++made <= 10 ? Answer{.right = true, .bytes = 100}
                        : Answer{.status = Status(Code::kUnavailable, "", "gone")};
  };
  const StudyResult lost = RunStudy(options, {.call = dying}, {});
  EXPECT_TRUE(lost.lost);
  EXPECT_LT(lost.points.size(), 6u);
  EXPECT_GE(lost.points.size(), 2u);
  std::stop_source stop;
  stop.request_stop();
  made = 0;
  EXPECT_TRUE(RunStudy(options, {.call = dying}, stop.get_token()).interrupted);
}

TEST(LoadStudy, ItsResultSaysWhatToDo) {
  StudyOptions options;
  options.sizes = {4096};
  options.connections = {1};
  options.seconds = 0.001;
  const auto call = [](const StudyPlace&, uint32_t, const Tuning&, const std::stop_token&) {
    Answer answer{.right = true, .bytes = 100, .reply = client::Reply()};
    answer.reply->timing.bottleneck = "receive";
    answer.reply->timing.overlap = 1.5;
    return answer;
  };
  const StudyResult study = RunStudy(options, {.call = call}, {});
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

/// Calls that end when they are told: with overlap 1 ms where nothing crosses the wire and 4 ms where it
/// does, without it 2 and 4 ms; `by` of that more or less from call to call.
class Device {
 public:
  explicit Device(double by) : by_(by) {}
  Answer operator()(const StudyPlace& place, uint32_t, const Tuning& tuning, const std::stop_token&) {
    const double ms = (place.via == Via::kWire ? 4
                       : tuning.sequential     ? 2
                                               : 1) *
                      (1 + by_ * static_cast<double>(++calls_ / 2 % 5 - 2) / 2);
    Answer answer{.bytes = 1'000'000};
    answer.began = LoadClock::now();
    answer.ended = answer.began + std::chrono::duration_cast<LoadClock::duration>(
                                      std::chrono::duration<double, std::milli>(ms));
    answer.check = [this] {
      ++checked_;
      return true;
    };
    return answer;
  }
  int calls() const { return calls_; }
  int checked() const { return checked_; }

 private:
  const double by_;
  int calls_ = 0, checked_ = 0;
};

TEST(LoadStudy, EachWayIsPreparedBeforeItsCallsAndJudgedByItself) {
  StudyOptions options;
  options.sizes = {4096, 1 << 20};
  options.vias = {Via::kRegion, Via::kResident, Via::kWire};
  options.connections = {1, 2};
  options.seconds = 0.001;
  Device device(0.1);
  std::vector<std::pair<size_t, Via>> prepared;
  size_t all = 0, told = 0;
  const StudyResult study = RunStudy(
      options,
      {.prepare =
           [&](const StudyPlace& place, const std::stop_token&) {
             prepared.emplace_back(place.size, place.via);
             const bool too_large = place.size == 1 && place.via == Via::kResident;
             return too_large ? Status(Code::kResourceExhausted, "LIMIT", "too large") : Status();
           },
       .call =
           [&](const StudyPlace& place, uint32_t input, const Tuning& tuning, const std::stop_token& stop) {
             EXPECT_EQ(prepared.back(), std::pair(place.size, place.via));
             return device(place, input, tuning, stop);
           }},
      {}, [&](size_t, size_t of) { all = of, ++told; });
  EXPECT_EQ(prepared.size(), 6u);
  EXPECT_EQ(device.checked(), device.calls());
  EXPECT_EQ(all, 10u) << "regions have no connections to choose";
  EXPECT_EQ(told, 8u);
  ASSERT_EQ(study.left_out.size(), 1u);
  EXPECT_EQ(study.left_out[0].place.via, Via::kResident);
  EXPECT_FALSE(study.lost);
  ASSERT_EQ(study.points.size(), 16u);
  for (const StudyPoint& point : study.points) {
    const double ms = point.via == Via::kWire ? 4 : point.overlap() ? 1 : 2;
    EXPECT_NEAR(point.bytes_per_second(), 1e9 / ms, 0.08e9 / ms) << "by what the answers say";
    ASSERT_TRUE(point.noise());
    EXPECT_GT(*point.noise(), 0.005);
    EXPECT_LT(*point.noise(), 0.11);
  }
  const auto region = Recommend(study.points, Via::kRegion), wire = Recommend(study.points, Via::kWire);
  ASSERT_TRUE(region && wire);
  EXPECT_NEAR(region->bytes_per_second / region->serial_bytes_per_second, 2, 0.3);
  EXPECT_NEAR(wire->bytes_per_second / wire->serial_bytes_per_second, 1, 0.15);

  ServerFacts server{"localhost:1", {}, std::nullopt};
  server.info.devices = {{.id = "cuda:0", .name = "a GPU"}};
  const std::vector<OperationSpec> operations{StudyOperation(options, 4096).value(),
                                              StudyOperation(options, 1 << 20).value()};
  const auto json = StudyJson(options, operations, server, study, "2026-01-31T12:00:00Z", 1);
  EXPECT_EQ(json["scenario"]["via"], (nlohmann::json{"region", "resident", "wire"}));
  EXPECT_EQ(json["study"][0]["via"], "region");
  EXPECT_GT(json["study"][0]["noise"], 0);
  EXPECT_EQ(json["recommendation"]["via"], "wire");
  ASSERT_EQ(json["recommendations"].size(), 3u);
  EXPECT_EQ(json["recommendations"][0]["via"], "region");
  EXPECT_NEAR(json["recommendations"][0]["overlap_worth"].get<double>(), 2, 0.3);
  EXPECT_GT(json["recommendations"][0]["overlap_worth_noise"], 0);
  EXPECT_THAT(json["findings"][0].get<std::string>(), HasSubstr("Left out, arrays of 1 MiB from resident"));
  EXPECT_THAT(json["findings"][1].get<std::string>(),
              HasSubstr("Where the wire is not in the way, through shared memory, overlap"));
  const std::string text = ResultText(json);
  EXPECT_THAT(text, HasSubstr("Over the wire overlap of copies and kernels is worth"));
  EXPECT_THAT(text, HasSubstr("Through shared memory use the server's own block size"));
  EXPECT_THAT(text, HasSubstr(" ± "));
}

TEST(LoadStudy, AServerThatDiesIsAnErrorAndNoWrongAnswer) {
  for (const bool preparing : {false, true}) {
    StudyOptions options;
    options.sizes = {4096};
    options.vias = {Via::kRegion, Via::kWire};
    options.seconds = 0.001;
    int made = 0;
    const auto gone = [] { return Status(Code::kUnavailable, "", "gone"); };
    const StudyResult study =
        RunStudy(options,
                 {.prepare =
                      [&](const StudyPlace& place, const std::stop_token&) {
                        return preparing && place.via == Via::kWire ? gone() : Status();
                      },
                  .call =
                      [&](const StudyPlace&, uint32_t, const Tuning&, const std::stop_token&) {
                        return preparing || ++made <= 5 ? Answer{.right = true, .bytes = 100}
                                                        : Answer{.status = gone()};
                      }},
                 {});
    EXPECT_TRUE(study.lost);
    const auto json = StudyJson(options, {StudyOperation(options, 4096).value()}, ServerFacts(), study,
                                "2026-01-31T12:00:00Z", 1);
    EXPECT_EQ(json["stop"]["reason"], "server_lost");
    EXPECT_EQ(json["total"]["wrong"], 0);
    EXPECT_EQ(json["total"]["errors"], (nlohmann::json{{"UNAVAILABLE", 1}}));
    if (preparing) continue;
    EXPECT_EQ(json["study"][0]["errors"], (nlohmann::json{{"UNAVAILABLE", 1}})) << "the sixth call";
    for (const auto& cell : json["study"]) EXPECT_FALSE(cell.contains("wrong"));
    EXPECT_THAT(json["findings"][0].get<std::string>(), HasSubstr("UNAVAILABLE"));
  }
}

}  // namespace
}  // namespace tilewire::load

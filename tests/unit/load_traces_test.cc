// The traced calls of a result: which spans are shown, and how large their page may become.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>

#include "client/load/html.h"
#include "client/load/results.h"
#include "client/load/span_merge.h"
#include "client/load/study.h"
#include "tests/unit/client_trace_testing.h"

namespace tilewire::load {
namespace {

using nlohmann::json;

DrawnSpan Span(const char* stage, double begin_us, double end_us) {
  return {"server", "lane 0", stage, begin_us, end_us};
}

TEST(MergeSpans, FewOnesStayAsTheyAre) {
  std::vector<DrawnSpan> spans{Span("kernel", 4, 5), Span("h2d", 2, 3), Span("h2d", 1, 2)};
  MergeSpans(3, &spans);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].begin_us, 1);
  EXPECT_EQ(spans[2].stage, std::string("kernel"));
  for (const DrawnSpan& span : spans) {
    EXPECT_EQ(span.spans, 1u);
    EXPECT_EQ(span.busy_us, 1);
  }
}

TEST(MergeSpans, TheShortestGapsGoFirst) {
  // Gaps of 5, 1 and 3 µs; the last two spans lie over each other.
  std::vector<DrawnSpan> spans{Span("h2d", 0, 10), Span("h2d", 15, 20), Span("h2d", 21, 30),
                               Span("h2d", 33, 40), Span("h2d", 36, 44)};
  MergeSpans(3, &spans);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[1].begin_us, 15);
  EXPECT_EQ(spans[1].end_us, 30);
  EXPECT_EQ(spans[1].spans, 2u);
  EXPECT_EQ(spans[1].busy_us, 14);
  EXPECT_EQ(spans[2].end_us, 44);
  EXPECT_EQ(spans[2].busy_us, 11);
}

TEST(MergeSpans, NeverJoinsWhatIsOfTwoKinds) {
  std::vector<DrawnSpan> spans;
  for (int i = 0; i < 1000; ++i)
    spans.push_back({i % 2 ? "client" : "server", "stream " + std::to_string(i % 3), i % 5 ? "send" : "write",
                     double(i), i + 0.5});
  std::map<std::string, double> busy;
  for (const DrawnSpan& span : spans) busy[span.process + span.track + span.stage] += 0.5;
  MergeSpans(1, &spans);
  EXPECT_EQ(spans.size(), busy.size()) << "one of each kind is left";
  uint64_t count = 0;
  for (const DrawnSpan& span : spans) {
    EXPECT_EQ(span.busy_us, busy.at(span.process + span.track + span.stage));
    count += span.spans;
  }
  EXPECT_EQ(count, 1000u);
}

/// Three operations with a traced call each, of that many blocks.
json Traces(uint64_t blocks, std::optional<double> other_us = {}) {
  std::vector<OperationSpec> operations(3);
  Measured measured(3);
  for (uint32_t i = 0; i < 3; ++i) {
    operations[i].name = "operation " + std::to_string(i);
    measured.traces.push_back({i, 1000, client::testing::TracedReply(8, 4, blocks)});
    measured.traces.back().reply.timing.other_us = other_us;
  }
  return TracesJson(operations, measured, 3);
}

TEST(LoadTraces, PagesOfVeryManySpansStayUnderAMegabyte) {
  const json traces = Traces(3000);
  ASSERT_EQ(traces.size(), 3u);
  for (const json& trace : traces) {
    EXPECT_EQ(trace["spans"].size(), 1500u);
    uint64_t spans = 0;
    for (const json& span : trace["spans"]) {
      spans += span.value("spans", 1);
      EXPECT_LE(span.value("busy_us", 0.0),
                span["end_us"].get<double>() - span["begin_us"].get<double>() + 0.002);
    }
    EXPECT_EQ(spans, trace["recorded"]) << "every span is in one";
    EXPECT_GT(spans, 27'000u);
  }
  EXPECT_LT(HtmlPage({{"kind", "run"}, {"traces", traces}}).size(), 1'000'000u);
}

TEST(LoadTraces, SmallOnesTellEverySpanOfEveryStream) {
  for (const json& trace : Traces(16)) {
    EXPECT_EQ(trace["spans"].size(), trace["recorded"]);
    EXPECT_EQ(trace["dropped"], 0);
    EXPECT_EQ(trace["clock_error_us"], 12);
    std::map<std::string, int> tracks;
    for (const json& span : trace["spans"]) {
      EXPECT_FALSE(span.contains("spans"));
      if (span["process"] == "server") ++tracks[span["track"].get<std::string>()];
    }
    EXPECT_EQ(tracks.size(), 12u) << "eight streams and four lanes";
    EXPECT_EQ(tracks["stream 7"], 6) << "two blocks: received, staged and sent";
  }
}

TEST(LoadTraces, WhatNoStageCoversHasARowOfItsOwn) {
  for (const json& trace : Traces(16, 775)) {
    std::vector<std::pair<double, double>> other;
    for (const json& span : trace["spans"])
      if (span["stage"] == "other") {
        EXPECT_EQ(span["process"], "server");
        EXPECT_EQ(span["track"], "other");
        other.emplace_back(span["begin_us"].get<double>(), span["end_us"].get<double>());
      }
    // The server's origin is at 100 µs; blocks come from 300 to 470, the finish from 930 to 940 of 960.
    EXPECT_EQ(other, (std::vector<std::pair<double, double>>{{105, 400}, {570, 1030}, {1040, 1060}}));
  }
}

TEST(LoadTraces, AStudyHasATypicalCallOfEachWayWithAndWithoutOverlap) {
  StudyOptions options;
  options.sizes = {4096, 1 << 20, 4096};
  options.vias = {Via::kRegion, Via::kWire};
  options.connections = {1, 2};
  options.seconds = 0.001;
  int traced = 0;
  const auto trace = [&](const StudyPlace& place, const Tuning& tuning, const std::stop_token&) {
    EXPECT_EQ(place.size, 1u) << "the largest";
    constexpr int kMs[] = {5, 9, 1, 7, 3};  // of every way five calls with overlap and five without
    const auto begin = LoadClock::now();
    Answer answer{.right = true, .bytes = 100, .reply = client::Reply(), .began = begin};
    const int ms = kMs[traced++ / 2 % 5] + (tuning.sequential ? 10 : 0);
    answer.ended = begin + std::chrono::milliseconds(ms);
    answer.reply->client_wall_us = ms * 1e3;
    answer.reply->trace.emplace();
    return answer;
  };
  const auto call = [](const StudyPlace&, uint32_t, const Tuning&, const std::stop_token&) {
    return Answer{.right = true, .bytes = 100};
  };
  const StudyResult study = RunStudy(options, {.call = call, .trace = trace}, {});
  ASSERT_EQ(study.traces.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(study.traces[i].place.via, i < 2 ? Via::kRegion : Via::kWire);
    EXPECT_EQ(study.traces[i].overlap, i % 2 == 0);
    EXPECT_EQ(study.traces[i].reply.client_wall_us, i % 2 == 0 ? 5e3 : 15e3) << "the median";
  }
  std::vector<OperationSpec> operations;
  for (const uint64_t size : options.sizes) operations.push_back(StudyOperation(options, size).value());
  const auto json = StudyJson(options, operations, ServerFacts(), study, "2026-01-31T12:00:00Z", 1);
  ASSERT_EQ(json["traces"].size(), 4u);
  EXPECT_EQ(json["traces"][1]["operation"],
            operations[1].name + " through shared memory, one after the other");
}

}  // namespace
}  // namespace tilewire::load

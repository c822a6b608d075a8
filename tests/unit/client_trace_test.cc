// The trace file: read back, it tells every span.
#include "client/cli/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "client/cli/report.h"
#include "client/cli/tracks.h"
#include "tests/unit/client_trace_testing.h"

namespace tilewire::cli {
namespace {

using client::testing::TracedReply;
using nlohmann::json;

/// Events with a duration.
std::vector<json> Spans(const json& file) {
  std::vector<json> spans;
  for (const json& event : file["traceEvents"])
    if (event["ph"] == "X") spans.push_back(event);
  return spans;
}

std::pair<int, int> ThreadOf(const json& event) {
  return {event["pid"].get<int>(), event["tid"].get<int>()};
}

TEST(TraceJson, TellsEverySpanOnce) {
  const client::Reply reply = TracedReply(3, 2, 50);
  const json file = json::parse(TraceJson("rmse f32 (5)", reply));
  EXPECT_EQ(file["displayTimeUnit"], "ms");
  EXPECT_EQ(file["otherData"]["title"], "rmse f32 (5)");
  EXPECT_EQ(file["otherData"]["timing"]["bytes_copied"], 50 << 20);
  EXPECT_EQ(file["otherData"]["trace"]["clock_error_us"], 12);
  std::multiset<std::tuple<std::string, double, double>> told, expected;
  for (const json& span : Spans(file))
    told.emplace(span["name"].get<std::string>(), span["ts"].get<double>(), span["dur"].get<double>());
  for (const auto& span : reply.trace->spans)
    expected.emplace(Name(span.stage), span.begin_us, span.end_us - span.begin_us);
  for (const auto& span : reply.timing.spans)
    expected.emplace(span.index == 50 ? "finish" : Name(span.stage), span.begin_us + 100,
                     (span.end_us + 100) - (span.begin_us + 100));
  EXPECT_EQ(told, expected);
}

TEST(TraceJson, NamesProcessesAndThreadsAndSaysWhatASpanMoved) {
  const json file = json::parse(TraceJson("", TracedReply(2, 1, 4)));
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  for (const json& event : file["traceEvents"]) {
    if (event["name"] == "process_name")
      processes[event["pid"].get<int>()] = event["args"]["name"].get<std::string>();
    if (event["name"] == "thread_name") threads[ThreadOf(event)] = event["args"]["name"].get<std::string>();
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{1, "client"}, {2, "server cuda:0"}}));
  std::vector<std::string> names;
  for (const auto& [key, name] : threads) names.push_back(std::to_string(key.first) + " " + name);
  EXPECT_EQ(names, (std::vector<std::string>{"1 call", "1 out, stream 0", "1 out, stream 1", "1 in, stream 0",
                                             "1 in, stream 1", "2 queue", "2 receive, stream 0",
                                             "2 receive, stream 1", "2 stage, stream 0", "2 stage, stream 1",
                                             "2 h2d, lane 0", "2 kernel, lane 0", "2 d2h, lane 0",
                                             "2 send, stream 0", "2 send, stream 1"}));
  for (const json& span : Spans(file)) {
    const std::string thread = threads.at(ThreadOf(span));
    if (span["name"] == "h2d") {
      EXPECT_EQ(thread, "h2d, lane 0");
      EXPECT_EQ(span["args"]["bytes"], 1 << 20);
      EXPECT_EQ(span["args"]["place"].get<std::string>().substr(0, 6), "block ");
    }
    if (span["name"] == "write") {
      EXPECT_EQ(span["args"]["place"].get<std::string>().substr(0, 7), "offset ");
    }
    if (span["name"] == "kernel") {
      EXPECT_EQ(span["args"]["place"].get<std::string>().substr(0, 6), "range ");
    }
  }
}

TEST(TraceJson, WhatNoStageCoversIsARowOfItsOwn) {
  client::Reply reply = TracedReply(1, 1, 4);
  reply.timing.other_us = 775;
  const json file = json::parse(TraceJson("", reply));
  EXPECT_EQ(file["otherData"]["timing"]["other_us"], 775);
  const auto tracks = TracksOf(reply);
  EXPECT_EQ(tracks.back().name, "other") << "the last one";
  EXPECT_TRUE(tracks.back().server);
  std::vector<std::pair<double, double>> told;
  for (const json& span : Spans(file)) {
    if (span["name"] != "other") continue;
    EXPECT_EQ(span["pid"], 2);
    told.emplace_back(span["ts"].get<double>() - 100, span["dur"].get<double>());
  }
  // Admitted at 5; four blocks from 300 to 350; the finish from 810 to 820; the reply at 840.
  EXPECT_EQ(told, (std::vector<std::pair<double, double>>{{5, 295}, {350, 460}, {820, 20}}));
  reply.timing.spans_dropped = 1;
  EXPECT_EQ(TracksOf(reply).size(), tracks.size() - 1) << "no row of guesses";
}

TEST(TraceJson, SpansOfAThreadFollowEachOtherOrNest) {
  const json file = json::parse(TraceJson("", TracedReply(4, 3, 300)));
  std::map<std::pair<int, int>, std::vector<double>> open;  // ends
  std::map<std::pair<int, int>, double> last;
  for (const json& span : Spans(file)) {
    const std::pair<int, int> thread = ThreadOf(span);
    const double begin = span["ts"].get<double>(), end = begin + span["dur"].get<double>();
    EXPECT_GE(span["dur"].get<double>(), 0);
    EXPECT_TRUE(!last.contains(thread) || last[thread] <= begin) << "out of order";
    last[thread] = begin;
    auto& ends = open[thread];
    while (!ends.empty() && ends.back() <= begin + 1e-6) ends.pop_back();
    EXPECT_TRUE(ends.empty() || end <= ends.back() + 1e-6) << span.dump();
    ends.push_back(end);
  }
}

TEST(TraceJson, ForeignBytesInNamesAreHarmless) {
  client::Reply reply = TracedReply(1, 1, 1);
  reply.timing.device = "cuda \"0\" \\ \xff\n";
  EXPECT_TRUE(json::accept(TraceJson("\x01\xfe", reply)));
}

TEST(TraceJson, ServersThatDoNotCountCopiesSayNothingOfThem) {
  client::Reply reply = TracedReply(1, 1, 1);
  EXPECT_TRUE(JsonTiming(reply).contains("bytes_copied"));
  reply.timing.bytes_copied.reset();
  EXPECT_FALSE(JsonTiming(reply).contains("bytes_copied"));
}

TEST(Tracks, NothingWithoutATrace) {
  client::Reply reply = TracedReply(1, 1, 3);
  reply.trace.reset();
  EXPECT_TRUE(TracksOf(reply).empty());
}

TEST(Tracks, DescribeTheCall) {
  const ArraySpec matrix = MakeSpec(DType::kF32, std::vector<int64_t>{3, 4}).value();
  const ArraySpec scalar = MakeSpec(DType::kF64, std::vector<int64_t>{}).value();
  const std::vector<client::ArraySource> one{client::ArraySource::FromMemory(matrix, nullptr)},
      two{one[0], client::ArraySource::Resident("0123-45")};
  EXPECT_EQ(DescribeCall(client::RmseOp{}, two, scalar), "rmse f32 (3, 4), array:0123-45 -> f64 ()");
  EXPECT_EQ(DescribeCall(client::TransposeOp{}, one, matrix), "transpose f32 (3, 4) -> f32 (3, 4)");
  EXPECT_EQ(DescribeCall(client::GaussianOp{}, one, matrix), "gaussian-pdf f32 (3, 4) -> f32 (3, 4)");
}

}  // namespace
}  // namespace tilewire::cli

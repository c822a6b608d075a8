// Spans of a call: what is recorded, how much of it, and how the clocks of both sides are aligned.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "client/cpp/span_recorder.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

#include "client/cpp/client.h"

namespace tilewire::client {
namespace {

using testing::FakeBehaviour;
using testing::FakeServer;
using testing::Pair;

/// A call over `streams` streams whose server's origin is at `origin`; messages take random times to arrive.
struct Simulated {
  std::vector<ClientSpan> spans;
  Timing timing;
};

Simulated Simulate(double origin, uint32_t streams, double slowest, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto delay = [&] { return 20 + std::fmod(static_cast<double>(random() % 100'000), slowest); };
  Simulated call;
  const auto server = [&](Stage stage, double begin, double end, uint32_t stream) {
    call.timing.spans.push_back({stage, begin - origin, end - origin, stream, 0, 1, 0});
  };
  call.spans.push_back({.stage = ClientStage::kConnect, .begin_us = 0, .end_us = 5});
  server(Stage::kQueue, origin, origin + 40, 0);
  double now = origin + 40 + delay();
  call.spans.push_back({.stage = ClientStage::kOpen, .begin_us = 5, .end_us = now});
  for (int i = 0; i < 50; ++i)
    for (uint32_t stream = 0; stream < streams; ++stream) {
      const double received = now + delay();
      call.spans.push_back(
          {.stage = ClientStage::kWrite, .begin_us = now, .end_us = now + 3, .stream = stream});
      server(Stage::kReceive, now, received, stream);
      const double sent = received + 10, came = sent + delay();
      server(Stage::kSend, sent, sent + 5, stream);
      call.spans.push_back(
          {.stage = ClientStage::kReceive, .begin_us = now, .end_us = came, .stream = stream});
      now = came + 1;
    }
  call.timing.wall_us = now - origin;
  call.spans.push_back({.stage = ClientStage::kResult, .begin_us = now, .end_us = now + delay()});
  return call;
}

TEST(Align, TheTruthLiesWithinTheStatedError) {
  for (uint64_t seed = 0; seed < 50; ++seed)
    for (const uint32_t streams : {1u, 4u}) {
      const double origin = 100 + static_cast<double>(seed * 37 % 1000),
                   slowest = 1 + static_cast<double>(seed * 40);
      const Simulated call = Simulate(origin, streams, slowest, seed);
      Trace trace;
      Align(call.spans, call.timing, &trace);
      EXPECT_LE(std::abs(trace.server_origin_us - origin), trace.clock_error_us + 1e-6) << seed;
      // The quickest of 50 messages each way bounds it; they need 20 µs and rarely all of `slowest` more.
      EXPECT_LE(trace.clock_error_us, 20 + slowest / 2) << seed;
    }
}

/// Begin and end of each.
std::vector<std::pair<double, double>> Times(const std::vector<ServerSpan>& spans) {
  std::vector<std::pair<double, double>> times;
  for (const ServerSpan& span : spans) {
    EXPECT_EQ(span.stage, Stage::kOther);
    times.emplace_back(span.begin_us, span.end_us);
  }
  return times;
}

TEST(OtherSpans, AreTheGapsUpToTheWall) {
  Timing timing;
  timing.wall_us = 100;
  timing.other_us = 55;
  timing.spans = {{Stage::kKernel, 50, 70, 1, 0, 0, 0},
                  {Stage::kQueue, 10, 20, 0, 0, 0, 0},
                  {Stage::kH2D, 45, 65, 0, 0, 0, 0},
                  {Stage::kD2H, 55, 60, 2, 0, 0, 0},
                  {Stage::kSend, 70, 80, 0, 0, 0, 0}};
  const std::vector<std::pair<double, double>> gaps{{0, 10}, {20, 45}, {80, 100}};
  EXPECT_EQ(Times(OtherSpans(timing)), gaps);
  timing.spans.push_back({Stage::kSend, 95, 100, 0, 0, 0, 0});
  timing.spans.push_back({Stage::kStage, 0, 10, 0, 0, 0, 0});
  const std::vector<std::pair<double, double>> fewer{{20, 45}, {80, 95}};
  EXPECT_EQ(Times(OtherSpans(timing)), fewer);
}

TEST(OtherSpans, AreNotGuessed) {
  Timing timing;
  timing.wall_us = 100;
  timing.other_us = 90;
  EXPECT_TRUE(OtherSpans(timing).empty()) << "no trace was asked for";
  timing.spans = {{Stage::kKernel, 50, 60, 0, 0, 0, 0}};
  EXPECT_EQ(OtherSpans(timing).size(), 2u);
  timing.spans_dropped = 1;
  EXPECT_TRUE(OtherSpans(timing).empty()) << "the spans that are missing may be there";
  timing.spans_dropped = 0;
  timing.other_us.reset();
  EXPECT_TRUE(OtherSpans(timing).empty()) << "an older server may have stages without spans";
}

TEST(Align, UnaryCallsKnowOnlyTheirOwnBeginAndEnd) {
  Timing timing;
  timing.wall_us = 100;
  Trace trace;
  Align({{.stage = ClientStage::kExchange, .begin_us = 10, .end_us = 190}}, timing, &trace);
  EXPECT_DOUBLE_EQ(trace.server_origin_us, 50);
  EXPECT_DOUBLE_EQ(trace.clock_error_us, 40);
}

/// No span of the server's lies outside of the call.
void ExpectWithin(const Simulated& call, const Trace& trace) {
  for (const ServerSpan& span : call.timing.spans) {
    EXPECT_GE(trace.server_origin_us + span.begin_us, call.spans.front().begin_us - 1e-6);
    EXPECT_LE(trace.server_origin_us + span.end_us, call.spans.back().end_us + 1e-6);
  }
}

TEST(Align, ServersThatNumberStreamsInTheirOwnWayStayWithinTheCall) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const double origin = 100 + static_cast<double>(seed * 37 % 1000);
    Simulated call = Simulate(origin, 3, 400, seed);
    for (ServerSpan& span : call.timing.spans) span.track = seed % 2 == 0 ? 0 : 2 - span.track;
    Trace trace;
    Align(call.spans, call.timing, &trace);
    ExpectWithin(call, trace);
    EXPECT_LE(std::abs(trace.server_origin_us - origin), trace.clock_error_us + 1e-6) << seed;
  }
}

TEST(Align, WhatEndsLastAtTheServerEndsBeforeTheAnswerIsHere) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Simulated call = Simulate(500, 3, 3000, seed);
    // A joined stream's last message, long after the others; its own arrival found no room among the spans.
    call.timing.spans.push_back(
        {Stage::kSend, call.timing.wall_us - 30, call.timing.wall_us - 1, 2, 99, 1, 0});
    Trace trace;
    Align(call.spans, call.timing, &trace);
    ExpectWithin(call, trace);
    // Calls of more messages than are kept: the result's own span is dropped, the call's is not.
    call.spans.back().stage = ClientStage::kCall;
    call.spans.back().begin_us = 0;
    Align(call.spans, call.timing, &trace);
    ExpectWithin(call, trace);
  }
}

TEST(Align, NothingKnownIsNoDisaster) {
  Trace trace;
  Align({}, Timing(), &trace);
  EXPECT_EQ(trace.server_origin_us, 0);
  EXPECT_EQ(trace.clock_error_us, 0);
}

TEST(SpanRecorder, KeepsTwentyThousandAndTheCallItself) {
  SpanRecorder recorder(SpanRecorder::Clock::now());
  for (int i = 0; i < 20'100; ++i)
    recorder.Add({.stage = ClientStage::kWrite, .begin_us = double(i), .end_us = double(i)});
  const Trace trace = recorder.Finish(Timing(), recorder.Now());
  ASSERT_EQ(trace.spans.size(), kMaxClientSpans);
  EXPECT_EQ(trace.spans_dropped, 101u);
  EXPECT_EQ(trace.spans.back().stage, ClientStage::kCall);
  EXPECT_EQ(trace.spans[19'998].begin_us, 19'998);
}

/// Spans of a stage by count.
std::map<ClientStage, int> Count(const Reply& reply) {
  std::map<ClientStage, int> count;
  for (const auto& span : reply.trace->spans) {
    ++count[span.stage];
    EXPECT_GE(span.begin_us, 0);
    EXPECT_GE(span.end_us, span.begin_us);
    EXPECT_LE(span.end_us, reply.client_wall_us) << Name(span.stage);
  }
  return count;
}

TEST(Spans, AreAbsentUnlessAskedFor) {
  FakeServer server;
  const Pair pair({300, 1000});
  const auto reply = Client::Connect(server.address()).Rmse(pair.A(), pair.B());
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_FALSE(reply->reply.trace);
  EXPECT_FALSE(server.log().trace);
}

TEST(Spans, OfAStreamTellEveryChunk) {
  FakeServer server;
  const Pair pair({300, 1000});
  CallOptions options;
  options.trace = true;
  options.form = CallForm::kStream;
  options.message_bytes = 50'000;
  auto client = Client::Connect(server.address());
  const auto reply = client.Rmse(pair.A(), pair.B(), {}, options);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(server.log().trace);
  auto count = Count(reply->reply);
  EXPECT_EQ(count[ClientStage::kCall], 1);
  EXPECT_EQ(count[ClientStage::kConnect], 1);
  EXPECT_EQ(count[ClientStage::kOpen], 1);
  EXPECT_EQ(count[ClientStage::kResult], 1);
  EXPECT_EQ(count[ClientStage::kRetry], 0);
  std::set<std::pair<uint32_t, uint64_t>> written, sent;
  uint64_t bytes = 0;
  for (const auto& span : reply->reply.trace->spans)
    if (span.stage == ClientStage::kWrite) {
      written.emplace(span.operand, span.offset);
      bytes += span.bytes;
    }
  for (const auto& chunk : server.log().chunks) sent.emplace(chunk.operand, chunk.offset);
  EXPECT_EQ(written, sent);
  EXPECT_EQ(bytes, 2'400'000u);

  uint64_t received = 0, delivered = 0;
  const Sink sink = [](uint64_t, std::span<const uint8_t>) { return Status(); };
  const auto transposed = client.Transpose(pair.A(), {}, sink, options);
  ASSERT_TRUE(transposed) << transposed.error().ToString();
  for (const auto& span : transposed->trace->spans) {
    if (span.stage == ClientStage::kReceive) received += span.bytes;
    if (span.stage == ClientStage::kSink) delivered += span.bytes;
  }
  EXPECT_EQ(received, 1'200'000u);
  EXPECT_EQ(delivered, 1'200'000u);
}

TEST(Spans, OfAUnaryCallAreTheExchangeAndTheSink) {
  FakeServer server;
  const Pair pair({3, 4});
  CallOptions options;
  options.trace = true;
  const auto reply = Client::Connect(server.address()).Rmse(pair.A(), pair.B(), {}, options);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(server.log().trace);
  EXPECT_EQ(Count(reply->reply),
            (std::map<ClientStage, int>{
                {ClientStage::kCall, 1}, {ClientStage::kExchange, 1}, {ClientStage::kSink, 1}}));
}

TEST(Spans, OfFailedAttemptsAreOneEach) {
  FakeBehaviour behaviour;
  behaviour.busy = 2;
  behaviour.pushback_ms = 1;
  FakeServer server(behaviour);
  const Pair pair({300, 1000});
  CallOptions options;
  options.trace = true;
  const auto reply = Client::Connect(server.address()).Rmse(pair.A(), pair.B(), {}, options);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->reply.attempts, 3);
  auto count = Count(reply->reply);
  EXPECT_EQ(count[ClientStage::kRetry], 2);
  EXPECT_EQ(count[ClientStage::kConnect], 1);
  EXPECT_EQ(count[ClientStage::kOpen], 1);
}

}  // namespace
}  // namespace tilewire::client

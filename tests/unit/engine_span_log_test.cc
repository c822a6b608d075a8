// Stage times are unions of spans, whatever their order and number.
#include "server/engine/job/span_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
const TimePoint kOrigin = TimePoint() + std::chrono::hours(1);

Span Make(Stage stage, int64_t begin_us, int64_t end_us, uint32_t track = 0, uint64_t index = 0) {
  return {stage, kOrigin + microseconds(begin_us), kOrigin + microseconds(end_us), track, index};
}

Timing Fill(const SpanLog& log, int64_t now_us) {
  Timing timing;
  log.Fill(kOrigin + microseconds(now_us), &timing);
  return timing;
}

TEST(SpanLog, NothingObservedIsAbsentNotZero) {
  const SpanLog log(kOrigin, true);
  const Timing timing = Fill(log, 50);
  for (int stage = 1; stage < kStageCount; ++stage) EXPECT_LT(timing.of(static_cast<Stage>(stage)), 0);
  EXPECT_DOUBLE_EQ(timing.wall_us, 50);
  EXPECT_LT(timing.overlap, 0);
  EXPECT_EQ(timing.bottleneck, "");
  EXPECT_TRUE(timing.spans.empty());
  EXPECT_EQ(timing.origin, kOrigin);
}

TEST(SpanLog, UnionCountsOverlapOnceAndGapsNever) {
  SpanLog log(kOrigin, false);
  log.Add(Make(Stage::kH2D, 0, 10));
  log.Add(Make(Stage::kH2D, 5, 15));    // overlaps
  log.Add(Make(Stage::kH2D, 6, 8));     // inside
  log.Add(Make(Stage::kH2D, 15, 20));   // touches
  log.Add(Make(Stage::kH2D, 40, 50));   // after a gap
  log.Add(Make(Stage::kH2D, -10, -5));  // late, before all others
  log.Add(Make(Stage::kH2D, 18, 42));   // late, closes the gap
  log.Add(Make(Stage::kKernel, 3, 3));  // observed, took no time
  const Timing timing = Fill(log, 100);
  EXPECT_DOUBLE_EQ(timing.of(Stage::kH2D), 55);
  EXPECT_DOUBLE_EQ(timing.of(Stage::kKernel), 0);
  EXPECT_LT(timing.of(Stage::kD2H), 0);
}

TEST(SpanLog, OverlapAndBottleneckLeaveTheQueueOut) {
  SpanLog log(kOrigin, false);
  log.Add(Make(Stage::kQueue, 0, 600));
  log.Add(Make(Stage::kH2D, 600, 900));
  log.Add(Make(Stage::kKernel, 700, 1000));
  log.Add(Make(Stage::kD2H, 900, 1000));
  log.Add(Make(Stage::kKernel, 600, 610));
  const Timing timing = Fill(log, 1000);
  EXPECT_DOUBLE_EQ(timing.of(Stage::kQueue), 600);
  EXPECT_DOUBLE_EQ(timing.wall_us, 1000);
  EXPECT_DOUBLE_EQ(timing.overlap, (300.0 + 310 + 100) / 400);
  EXPECT_EQ(timing.bottleneck, "kernel");
}

TEST(SpanLog, EveryStageMayBeTheBottleneck) {
  constexpr int kOther = static_cast<int>(Stage::kOther);
  for (int stage = 2; stage < kStageCount; ++stage) {
    SpanLog log(kOrigin, false);
    for (int spanned = 1; spanned < kOther; ++spanned)
      log.Add(Make(static_cast<Stage>(spanned), 0, spanned == stage ? 20 : 10));
    EXPECT_EQ(Fill(log, 30).bottleneck, StageName(static_cast<Stage>(stage)));
  }
}

TEST(SpanLog, OtherIsWhatNoStageCovers) {
  SpanLog log(kOrigin, false);
  log.Add(Make(Stage::kQueue, -5, 10));  // of it, what lies before the origin is none of the wall
  log.Add(Make(Stage::kStage, 20, 30));
  log.Add(Make(Stage::kKernel, 25, 40));
  log.Add(Make(Stage::kD2H, 35, 38));
  log.Add(Make(Stage::kSend, 15, 22));  // late
  const Timing timing = Fill(log, 100);
  EXPECT_DOUBLE_EQ(timing.of(Stage::kOther), 100 - 10 - 25);
  EXPECT_EQ(timing.bottleneck, "other");
  EXPECT_DOUBLE_EQ(timing.overlap, (10.0 + 15 + 3 + 7) / (100 - 15)) << "which leaves it out";
}

TEST(SpanLog, OtherLimitsATinyCallAndNotTheKernel) {
  SpanLog log(kOrigin, false);
  log.Add(Make(Stage::kQueue, 8, 9));
  log.Add(Make(Stage::kKernel, 20, 22));
  EXPECT_EQ(Fill(log, 35).bottleneck, "other");
  EXPECT_DOUBLE_EQ(Fill(log, 35).of(Stage::kOther), 32);
  EXPECT_EQ(Fill(log, 22).bottleneck, "other") << "without the tail too";
}

TEST(SpanLog, OtherIsZeroWhereStagesCoverAllAndLosesToEquals) {
  SpanLog log(kOrigin, false);
  log.Add(Make(Stage::kReceive, 0, 10));
  log.Add(Make(Stage::kKernel, 10, 20));
  EXPECT_DOUBLE_EQ(Fill(log, 20).of(Stage::kOther), 0);
  EXPECT_DOUBLE_EQ(Fill(log, 30).of(Stage::kOther), 10);
  EXPECT_EQ(Fill(log, 30).bottleneck, "receive");
  EXPECT_EQ(Fill(log, 31).bottleneck, "other");
}

TEST(SpanLog, UnionEqualsPaintingMicroseconds) {
  std::mt19937_64 random(7);
  constexpr int kLength = 20'000;
  for (int round = 0; round < 20; ++round) {
    SpanLog log(kOrigin, false);
    auto painted = std::make_unique<std::bitset<kLength>>();
    const int count = 1 << (random() % 13);
    for (int i = 0; i < count; ++i) {
      const auto begin = static_cast<int64_t>(random() % (kLength - 20));
      const auto end = begin + 1 + static_cast<int64_t>(random() % 19);
      log.Add(Make(Stage::kStage, begin, end));
      for (int64_t t = begin; t < end; ++t) painted->set(static_cast<size_t>(t));
    }
    EXPECT_DOUBLE_EQ(Fill(log, kLength).of(Stage::kStage), static_cast<double>(painted->count()));
  }
}

TEST(SpanLog, OtherEqualsWhatIsNotPaintedByAnyStage) {
  std::mt19937_64 random(8);
  constexpr int kLength = 20'000;
  for (int round = 0; round < 20; ++round) {
    SpanLog log(kOrigin, false);
    auto painted = std::make_unique<std::bitset<kLength>>();
    const int count = 1 << (random() % 12);
    for (int i = 0; i < count; ++i) {
      const auto stage = static_cast<Stage>(1 + random() % (static_cast<uint64_t>(Stage::kOther) - 1));
      const auto begin = static_cast<int64_t>(random() % (kLength - 20));
      const auto end = begin + 1 + static_cast<int64_t>(random() % 19);
      log.Add(Make(stage, begin, end));
      for (int64_t t = begin; t < end; ++t) painted->set(static_cast<size_t>(t));
    }
    EXPECT_DOUBLE_EQ(Fill(log, kLength).of(Stage::kOther), static_cast<double>(kLength - painted->count()));
  }
}

TEST(SpanLog, QuarterOfAMillionDisjointSpansStayExactAndCheap) {
  SpanLog log(kOrigin, false);
  constexpr int64_t kSpans = 250'000;
  for (int64_t i = 0; i < kSpans; ++i) log.Add(Make(Stage::kReceive, 10 * i, 10 * i + 4));
  EXPECT_DOUBLE_EQ(Fill(log, 10 * kSpans).of(Stage::kReceive), 4.0 * kSpans);
  EXPECT_DOUBLE_EQ(Fill(log, 10 * kSpans).of(Stage::kOther), 6.0 * kSpans);
  // Bounded: filling copies what is kept, so it stays quick however many spans there were.
  // In processor time, which other programs do not lengthen.
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 100; ++i) Fill(log, 10 * kSpans);
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC);
}

TEST(SpanLog, ManySpansSlightlyOutOfOrderStayExact) {
  SpanLog log(kOrigin, false);
  std::mt19937_64 random(3);
  constexpr int64_t kSpans = 200'000, kWindow = 1000;
  std::vector<int64_t> window;
  for (int64_t i = 0; i < kSpans; i += kWindow) {
    window.resize(kWindow);
    for (int64_t k = 0; k < kWindow; ++k) window[static_cast<size_t>(k)] = i + k;
    std::shuffle(window.begin(), window.end(), random);
    for (const int64_t k : window) log.Add(Make(Stage::kKernel, 10 * k, 10 * k + 7));
  }
  EXPECT_DOUBLE_EQ(Fill(log, 10 * kSpans).of(Stage::kKernel), 7.0 * kSpans);
}

TEST(SpanLog, AVeryLateSpanNeverCountsTwice) {
  SpanLog log(kOrigin, false);
  for (int64_t i = 0; i < 100'000; ++i) log.Add(Make(Stage::kKernel, 10 * i, 10 * i + 5));
  log.Add(Make(Stage::kKernel, 0, 1'000'000));  // over all of them
  const double total = Fill(log, 1'000'000).of(Stage::kKernel);
  EXPECT_GE(total, 5.0 * 100'000);
  EXPECT_LE(total, 1'000'000);
}

TEST(SpanLog, TraceKeepsSpansAsTheyCameUpToItsBound) {
  SpanLog log(kOrigin, true), without(kOrigin, false);
  for (int i = 0; i < kMaxTraceSpans + 10; ++i) {
    log.Add(Make(Stage::kSend, i, i + 1, 7, static_cast<uint64_t>(i)));
    without.Add(Make(Stage::kSend, i, i + 1));
  }
  const Timing timing = Fill(log, kMaxTraceSpans + 10);
  ASSERT_EQ(timing.spans.size(), static_cast<size_t>(kMaxTraceSpans));
  EXPECT_EQ(timing.spans_dropped, 10U);
  EXPECT_EQ(Fill(without, 1).spans_dropped, 0U) << "none were wanted";
  for (size_t i = 0; i < timing.spans.size(); i += 999) {
    EXPECT_EQ(timing.spans[i].index, i);
    EXPECT_EQ(timing.spans[i].track, 7U);
    EXPECT_EQ(timing.spans[i].begin, kOrigin + microseconds(static_cast<int64_t>(i)));
  }
  EXPECT_DOUBLE_EQ(timing.of(Stage::kSend), kMaxTraceSpans + 10);
  EXPECT_TRUE(Fill(without, 1).spans.empty());
}

}  // namespace
}  // namespace tilewire::engine

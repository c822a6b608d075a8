// Collects a traced call's spans while it runs. Internal to the library.
#pragma once

#include <chrono>

#include "client/cpp/schedule.h"
#include "client/cpp/spans.h"
#include "server/base/mutex.h"

namespace tilewire::client {

struct Timing;

/// The spans of one call. Thread-safe: its streams run on several threads.
class SpanRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  explicit SpanRecorder(Clock::time_point start) : start_(start) {}

  /// Microseconds since the call's start.
  double Now() const { return std::chrono::duration<double, std::micro>(Clock::now() - start_).count(); }
  void Add(const ClientSpan& span);
  /// What was recorded since `since_us` becomes one kRetry: that attempt failed and the next one begins.
  void Retry(double since_us);
  /// All of it, aligned with what the server says; the call was over at `end_us`.
  Trace Finish(const Timing& timing, double end_us);

 private:
  const Clock::time_point start_;
  Mutex mutex_;
  std::vector<ClientSpan> spans_ TILEWIRE_GUARDED_BY(mutex_);
  size_t kept_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< spans_ of earlier attempts
  uint64_t dropped_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

/// Places the server's origin on the client's time line, as Trace says. `spans` are those of one attempt.
void Align(const std::vector<ClientSpan>& spans, const Timing& timing, Trace* trace);

/// What one stream notes. Does nothing, at no cost, without a recorder. Used by one thread.
class StreamTrace {
 public:
  explicit StreamTrace(SpanRecorder* recorder) : recorder_(recorder) {}

  void CallBegins() { Begin(&call_); }
  void OpenBegins() { Begin(&open_); }
  /// Only now a stream knows its number, so that what came before is told here.
  void Opened(uint32_t stream) {
    stream_ = stream;
    if (recorder_)
      recorder_->Add({.stage = ClientStage::kConnect, .begin_us = call_, .end_us = open_, .stream = stream_});
    End(ClientStage::kOpen, open_);
  }
  void WriteBegins() { Begin(&write_); }
  void Wrote(const ChunkPlan& chunk) {
    End(ClientStage::kWrite, write_, chunk.offset, chunk.bytes, chunk.operand);
  }
  void HalfCloses() { Begin(&write_); }
  void ReadBegins() { Begin(&read_); }
  void ChunkCame(uint64_t offset, uint64_t bytes) {
    End(ClientStage::kReceive, read_, offset, bytes);
    Begin(&sink_);
  }
  void Delivered(uint64_t offset, uint64_t bytes) { End(ClientStage::kSink, sink_, offset, bytes); }
  void ResultCame(uint64_t bytes) { End(ClientStage::kResult, write_, 0, bytes); }

 private:
  void Begin(double* at) {
    if (recorder_) *at = recorder_->Now();
  }
  void End(ClientStage stage, double begin, uint64_t offset = 0, uint64_t bytes = 0, uint32_t operand = 0) {
    if (recorder_) recorder_->Add({stage, begin, recorder_->Now(), stream_, operand, offset, bytes});
  }

  SpanRecorder* const recorder_;  ///< may be null
  uint32_t stream_ = 0;
  double call_ = 0, open_ = 0, write_ = 0, read_ = 0, sink_ = 0;
};

}  // namespace tilewire::client

#include "client/cpp/span_recorder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "client/cpp/client.h"

namespace tilewire::client {

const char* Name(Stage stage) {
  static constexpr const char* kNames[kStageCount] = {"",    "queue",  "receive", "stage",
                                                      "h2d", "kernel", "d2h",     "send"};
  const auto index = static_cast<size_t>(stage);
  return index < std::size(kNames) ? kNames[index] : "";
}

const char* Name(ClientStage stage) {
  static constexpr const char* kNames[kClientStageCount] = {
      "call", "retry", "connect", "open", "write", "result", "receive", "sink", "exchange"};
  return kNames[static_cast<size_t>(stage)];
}

void SpanRecorder::Add(const ClientSpan& span) {
  const std::lock_guard lock(mutex_);
  // One place is kept for the call itself, which ends last.
  if (spans_.size() + 1 < kMaxClientSpans || span.stage == ClientStage::kCall) {
    spans_.push_back(span);
  } else {
    ++dropped_;
  }
}

void SpanRecorder::Retry(double since_us) {
  const ClientSpan retry{.stage = ClientStage::kRetry, .begin_us = since_us, .end_us = Now()};
  const std::lock_guard lock(mutex_);
  spans_.resize(kept_);
  spans_.push_back(retry);
  kept_ = spans_.size();
  dropped_ = 0;
}

Trace SpanRecorder::Finish(const Timing& timing) {
  Add({.stage = ClientStage::kCall, .begin_us = 0, .end_us = Now()});
  const std::lock_guard lock(mutex_);
  Trace trace;
  Align({spans_.begin() + static_cast<std::ptrdiff_t>(kept_), spans_.end()}, timing, &trace);
  trace.spans = std::move(spans_);
  trace.spans_dropped = dropped_;
  return trace;
}

namespace {

/// Bounds of the server's origin on the client's time line.
struct Bounds {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();

  /// What happened at `server_us` there came after `client_us` here.
  void After(double client_us, double server_us) { lowest = std::max(lowest, client_us - server_us); }
  void Before(double client_us, double server_us) { highest = std::min(highest, client_us - server_us); }
};

/// Messages of a stream arrive in the order in which they were sent, so the k-th span of one side and of the
/// other are the same message, as long as both kept it.
using ByStream = std::map<uint32_t, std::vector<double>>;

}  // namespace

void Align(const std::vector<ClientSpan>& spans, const Timing& timing, Trace* trace) {
  Bounds bounds;
  ByStream received, sent;
  double admitted = 0;
  for (const ServerSpan& span : timing.spans) {
    if (span.stage == Stage::kQueue) admitted = std::max(admitted, span.end_us);
    if (span.stage == Stage::kReceive) received[span.track].push_back(span.end_us);
    if (span.stage == Stage::kSend) sent[span.track].push_back(span.begin_us);
  }
  std::map<uint32_t, size_t> written, arrived;
  for (const ClientSpan& span : spans) {
    const bool first = span.stream == 0;
    switch (span.stage) {
      case ClientStage::kConnect:
        if (first) bounds.After(span.begin_us, 0);
        break;
      case ClientStage::kOpen:
        if (first) bounds.Before(span.end_us, admitted);
        break;
      case ClientStage::kExchange:
        bounds.After(span.begin_us, 0);
        bounds.Before(span.end_us, timing.wall_us);
        break;
      case ClientStage::kResult:
        bounds.Before(span.end_us, timing.wall_us);
        break;
      case ClientStage::kWrite:
        if (const size_t k = written[span.stream]++; k < received[span.stream].size())
          bounds.After(span.begin_us, received[span.stream][k]);
        break;
      case ClientStage::kReceive:
        if (const size_t k = arrived[span.stream]++; k < sent[span.stream].size())
          bounds.Before(span.end_us, sent[span.stream][k]);
        break;
      default:
        break;
    }
  }
  if (!std::isfinite(bounds.lowest)) bounds.lowest = 0;
  if (!std::isfinite(bounds.highest)) bounds.highest = bounds.lowest;
  // Drifting clocks may cross the bounds of a long call: then that is the error.
  trace->server_origin_us = (bounds.lowest + bounds.highest) / 2;
  trace->clock_error_us = std::abs(bounds.highest - bounds.lowest) / 2;
}

}  // namespace tilewire::client

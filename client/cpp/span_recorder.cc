#include "client/cpp/span_recorder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "client/cpp/client.h"

namespace tilewire::client {

const char* Name(Stage stage) {
  static constexpr const char* kNames[kStageCount] = {"",       "queue", "receive", "stage", "h2d",
                                                      "kernel", "d2h",   "send",    "other"};
  const auto index = static_cast<size_t>(stage);
  return index < std::size(kNames) ? kNames[index] : "";
}

const char* Name(ClientStage stage) {
  static constexpr const char* kNames[kClientStageCount] = {
      "call", "retry", "connect", "open", "write", "result", "receive", "sink", "exchange"};
  return kNames[static_cast<size_t>(stage)];
}

std::vector<ServerSpan> OtherSpans(const Timing& timing) {
  if (!timing.other_us || timing.spans.empty() || timing.spans_dropped > 0) return {};
  std::vector<std::pair<double, double>> covered;
  covered.reserve(timing.spans.size() + 1);
  for (const ServerSpan& span : timing.spans) covered.emplace_back(span.begin_us, span.end_us);
  std::sort(covered.begin(), covered.end());
  covered.emplace_back(timing.wall_us, timing.wall_us);
  std::vector<ServerSpan> gaps;
  double since = 0;
  for (const auto& [begin, end] : covered) {
    if (begin > since) gaps.push_back({Stage::kOther, since, begin, 0, 0, 0, 0});
    since = std::max(since, end);
  }
  return gaps;
}

void SpanRecorder::Add(const ClientSpan& span) {
  const MutexLock lock(mutex_);
  // One place is kept for the call itself, which ends last.
  if (spans_.size() + 1 < kMaxClientSpans || span.stage == ClientStage::kCall) {
    spans_.push_back(span);
  } else {
    ++dropped_;
  }
}

void SpanRecorder::Retry(double since_us) {
  const ClientSpan retry{.stage = ClientStage::kRetry, .begin_us = since_us, .end_us = Now()};
  const MutexLock lock(mutex_);
  spans_.resize(kept_);
  spans_.push_back(retry);
  kept_ = spans_.size();
  dropped_ = 0;
}

Trace SpanRecorder::Finish(const Timing& timing, double end_us) {
  Add({.stage = ClientStage::kCall, .begin_us = 0, .end_us = end_us});
  const MutexLock lock(mutex_);
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
  bool Contradict() const { return lowest > highest; }
};

/// Messages of a stream arrive in the order in which they were sent, so the k-th span of one side and of the
/// other are the same message, as long as both kept it.
using ByStream = std::map<uint32_t, std::vector<double>>;

/// What the server's spans say of when it did what, on its own time line.
struct ServerTimes {
  explicit ServerTimes(const Timing& timing) : ended(timing.wall_us) {
    for (const ServerSpan& span : timing.spans) {
      ended = std::max(ended, span.end_us);
      began = std::min(began, span.begin_us);
      if (span.stage == Stage::kQueue) admitted = std::max(admitted, span.end_us);
      if (span.stage == Stage::kReceive) received[span.track].push_back(span.end_us);
      if (span.stage == Stage::kSend) sent[span.track].push_back(span.begin_us);
    }
  }
  double began = 0, ended;  ///< the first and the last moment that it tells of
  double admitted = 0;
  ByStream received, sent;
};

/// The server's part of a call lies between its request and its answer, whatever its spans are named.
Bounds BoundsOfTheCall(const std::vector<ClientSpan>& spans, const ServerTimes& server) {
  Bounds bounds;
  for (const ClientSpan& span : spans) {
    const bool starts = (span.stage == ClientStage::kConnect && span.stream == 0) ||
                        span.stage == ClientStage::kExchange || span.stage == ClientStage::kCall;
    const bool ends = span.stage == ClientStage::kResult || span.stage == ClientStage::kExchange ||
                      span.stage == ClientStage::kCall;
    if (starts) bounds.After(span.begin_us, server.began);
    if (ends) bounds.Before(span.end_us, server.ended);
  }
  return bounds;
}

/// `bounds`, narrowed by each message whose sending and arrival both sides tell of.
Bounds BoundsOfMessages(Bounds bounds, const std::vector<ClientSpan>& spans, ServerTimes server) {
  std::map<uint32_t, size_t> written, arrived;
  for (const ClientSpan& span : spans) {
    if (span.stage == ClientStage::kOpen && span.stream == 0) bounds.Before(span.end_us, server.admitted);
    if (span.stage == ClientStage::kWrite) {
      const auto& received = server.received[span.stream];
      if (const size_t k = written[span.stream]++; k < received.size())
        bounds.After(span.begin_us, received[k]);
    }
    if (span.stage == ClientStage::kReceive) {
      const auto& sent = server.sent[span.stream];
      if (const size_t k = arrived[span.stream]++; k < sent.size()) bounds.Before(span.end_us, sent[k]);
    }
  }
  return bounds;
}

}  // namespace

void Align(const std::vector<ClientSpan>& spans, const Timing& timing, Trace* trace) {
  const ServerTimes server(timing);
  const Bounds call = BoundsOfTheCall(spans, server);
  Bounds bounds = BoundsOfMessages(call, spans, server);
  // Messages that contradict each other were matched wrongly: a server may number its streams in another way.
  if (bounds.Contradict()) bounds = call;
  if (!std::isfinite(bounds.lowest)) bounds.lowest = 0;
  if (!std::isfinite(bounds.highest)) bounds.highest = bounds.lowest;
  // Drifting clocks may cross even the bounds of a long call: then that is the error.
  trace->server_origin_us = (bounds.lowest + bounds.highest) / 2;
  trace->clock_error_us = std::abs(bounds.highest - bounds.lowest) / 2;
}

}  // namespace tilewire::client

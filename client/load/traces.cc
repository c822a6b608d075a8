// Which traced calls a result shows, and how their spans are told.
#include <algorithm>
#include <cmath>

#include "client/load/results.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

/// Of one call; more would make the file unwieldy and the picture black.
constexpr size_t kMaxSpans = 5000;

bool OnLane(client::Stage stage) {
  return stage == client::Stage::kH2D || stage == client::Stage::kKernel || stage == client::Stage::kD2H;
}

ordered_json SpanJson(const char* process, const std::string& track, const char* stage, double begin_us,
                      double end_us) {
  return {
      {"process", process}, {"track", track}, {"stage", stage}, {"begin_us", begin_us}, {"end_us", end_us}};
}

ordered_json TraceJson(const OperationSpec& spec, const Traced& traced) {
  const client::Trace& trace = *traced.reply.trace;
  ordered_json json{{"operation", spec.name}, {"wall_us", traced.reply.client_wall_us}};
  if (traced.reply.timing.overlap) json["overlap"] = *traced.reply.timing.overlap;
  ordered_json spans = ordered_json::array();
  for (const client::ClientSpan& span : trace.spans)
    if (spans.size() < kMaxSpans)
      spans.push_back(SpanJson("client", "stream " + std::to_string(span.stream), client::Name(span.stage),
                               span.begin_us, span.end_us));
  const size_t limit = spans.size() + kMaxSpans;
  for (const client::ServerSpan& span : traced.reply.timing.spans)
    if (spans.size() < limit)
      spans.push_back(SpanJson("server",
                               (OnLane(span.stage) ? "lane " : "stream ") + std::to_string(span.track),
                               client::Name(span.stage), span.begin_us + trace.server_origin_us,
                               span.end_us + trace.server_origin_us));
  json["spans"] = std::move(spans);
  return json;
}

}  // namespace

ordered_json TracesJson(const std::vector<OperationSpec>& operations, const Measured& measured,
                        size_t at_most) {
  const auto distance = [&](const Traced& traced) {
    return std::abs(traced.latency_us - measured.operations[traced.operation].latency.Percentile(0.5));
  };
  std::vector<const Traced*> order;
  for (const Traced& traced : measured.traces)
    if (traced.reply.trace) order.push_back(&traced);
  std::sort(order.begin(), order.end(),
            [&](const Traced* a, const Traced* b) { return distance(*a) < distance(*b); });
  // The best of each operation comes first, then the second best of each, …
  std::vector<std::pair<size_t, const Traced*>> ranked;
  std::vector<size_t> seen(operations.size(), 0);
  for (const Traced* traced : order) ranked.emplace_back(seen[traced->operation]++, traced);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  ordered_json json = ordered_json::array();
  for (const auto& [rank, traced] : ranked)
    if (json.size() < at_most) json.push_back(TraceJson(operations[traced->operation], *traced));
  return json;
}

}  // namespace tilewire::load

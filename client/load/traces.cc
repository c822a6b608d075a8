// Which traced calls a result shows, and how their spans are told.
#include <algorithm>
#include <cmath>

#include "client/load/results.h"
#include "client/load/span_merge.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

/// Of one call, both sides together. With three calls to a run, up to six to a study, and some 150 bytes a
/// span a page stays under a megabyte.
constexpr size_t kMaxSpans = 1500, kMaxSpansOfStudy = 700;

bool OnLane(client::Stage stage) {
  return stage == client::Stage::kH2D || stage == client::Stage::kKernel || stage == client::Stage::kD2H;
}

std::vector<DrawnSpan> SpansOf(const client::Reply& reply) {
  std::vector<DrawnSpan> spans;
  for (const client::ClientSpan& span : reply.trace->spans)
    spans.push_back({"client", "stream " + std::to_string(span.stream), client::Name(span.stage),
                     span.begin_us, span.end_us});
  const double origin = reply.trace->server_origin_us;
  for (const client::ServerSpan& span : reply.timing.spans)
    spans.push_back({"server", (OnLane(span.stage) ? "lane " : "stream ") + std::to_string(span.track),
                     client::Name(span.stage), span.begin_us + origin, span.end_us + origin});
  for (const client::ServerSpan& span : client::OtherSpans(reply.timing))
    spans.push_back(
        {"server", "other", client::Name(span.stage), span.begin_us + origin, span.end_us + origin});
  return spans;
}

/// To the nanosecond: digits beyond it say nothing and take room.
double Nanoseconds(double us) {
  return std::round(us * 1000) / 1000;
}

ordered_json SpanJson(const DrawnSpan& span) {
  ordered_json json{{"process", span.process},
                    {"track", span.track},
                    {"stage", span.stage},
                    {"begin_us", Nanoseconds(span.begin_us)},
                    {"end_us", Nanoseconds(span.end_us)}};
  if (span.spans > 1) {
    json["spans"] = span.spans;
    json["busy_us"] = Nanoseconds(span.busy_us);
  }
  return json;
}

ordered_json TraceJson(const std::string& name, const client::Reply& reply, size_t most) {
  ordered_json json{{"operation", name}, {"wall_us", reply.client_wall_us}};
  if (reply.timing.overlap) json["overlap"] = *reply.timing.overlap;
  json["clock_error_us"] = Nanoseconds(reply.trace->clock_error_us);
  std::vector<DrawnSpan> spans = SpansOf(reply);
  json["recorded"] = spans.size();
  json["dropped"] = reply.trace->spans_dropped + reply.timing.spans_dropped;
  MergeSpans(most, &spans);
  ordered_json drawn = ordered_json::array();
  for (const DrawnSpan& span : spans) drawn.push_back(SpanJson(span));
  json["spans"] = std::move(drawn);
  return json;
}

}  // namespace

ordered_json StudyTraceJson(const std::string& name, const client::Reply& reply) {
  return TraceJson(name, reply, kMaxSpansOfStudy);
}

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
    if (json.size() < at_most)
      json.push_back(TraceJson(operations[traced->operation].name, traced->reply, kMaxSpans));
  return json;
}

}  // namespace tilewire::load

#include "server/engine/span_log.h"

#include <algorithm>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {
double Micros(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}
}  // namespace

void SpanLog::Add(const Span& span) {
  const auto stage = static_cast<size_t>(span.stage);
  auto& list = intervals_[stage];
  // Spans mostly arrive in order; extending the last one keeps lists short without sorting.
  if (!list.empty() && span.begin >= list.back().first && span.begin <= list.back().second) {
    list.back().second = std::max(list.back().second, span.end);
  } else {
    list.emplace_back(span.begin, span.end);
    if (list.size() >= std::max(kMergeAt, merge_at_[stage])) {
      Merge(&list);
      merge_at_[stage] = 2 * list.size();  // amortised: disjoint spans must not be merged again and again
    }
  }
  if (keep_ && spans_.size() < kMaxTraceSpans) spans_.push_back(span);
}

void SpanLog::Merge(std::vector<Interval>* intervals) {
  std::sort(intervals->begin(), intervals->end());
  size_t out = 0;
  for (const Interval& next : *intervals) {
    if (out > 0 && next.first <= (*intervals)[out - 1].second) {
      (*intervals)[out - 1].second = std::max((*intervals)[out - 1].second, next.second);
    } else {
      (*intervals)[out++] = next;
    }
  }
  intervals->resize(out);
}

void SpanLog::Fill(TimePoint now, Timing* timing) const {
  timing->origin = origin_;
  timing->wall_us = Micros(now - origin_);
  double sum = 0, longest = 0;
  for (size_t stage = 1; stage < intervals_.size(); ++stage) {
    if (intervals_[stage].empty()) continue;
    auto merged = intervals_[stage];
    Merge(&merged);
    double total = 0;
    for (const auto& [begin, end] : merged) total += Micros(end - begin);
    timing->stage_us[stage] = total;
    if (static_cast<Stage>(stage) == Stage::kQueue) continue;
    sum += total;
    if (total > longest) {
      longest = total;
      timing->bottleneck = StageName(static_cast<Stage>(stage));
    }
  }
  const double queue = std::max(0.0, timing->of(Stage::kQueue));
  if (sum > 0 && timing->wall_us > queue) timing->overlap = sum / (timing->wall_us - queue);
  timing->spans = spans_;
}

}  // namespace tilewire::engine

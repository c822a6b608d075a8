#include "server/engine/job/span_log.h"

#include <algorithm>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {
double Micros(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}
}  // namespace

void SpanLog::Add(const Span& span) {
  if (keep_ && spans_.size() < kMaxTraceSpans) {
    spans_.push_back(span);
  } else if (keep_) {
    ++dropped_;
  }
  Track& track = tracks_[static_cast<size_t>(span.stage)];
  auto& list = track.intervals;
  const TimePoint begin = std::max(span.begin, track.folded_to), end = std::max(span.end, begin);
  // Spans mostly arrive in order; extending the last one keeps lists short without sorting.
  if (!list.empty() && begin >= list.back().first && begin <= list.back().second) {
    list.back().second = std::max(list.back().second, end);
  } else {
    list.emplace_back(begin, end);
    if (list.size() >= kMaxIntervals) Shorten(&track);
  }
}

void SpanLog::Shorten(Track* track) {
  auto& list = track->intervals;
  Merge(&list);
  if (list.size() <= kMaxIntervals / 2) return;
  const auto half = list.begin() + kMaxIntervals / 2;
  for (auto it = list.begin(); it != half; ++it) track->folded += it->second - it->first;
  track->folded_to = (half - 1)->second;
  list.erase(list.begin(), half);
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
  for (size_t stage = 1; stage < tracks_.size(); ++stage) {
    auto merged = tracks_[stage].intervals;
    if (merged.empty()) continue;  // what was folded left the younger half here
    Merge(&merged);
    double total = Micros(tracks_[stage].folded);
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
  timing->spans_dropped = dropped_;
}

}  // namespace tilewire::engine

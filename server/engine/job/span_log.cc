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
  Add(span.begin, span.end, &tracks_[static_cast<size_t>(span.stage)]);
  Add(std::max(span.begin, origin_), span.end, &covered_);
}

void SpanLog::Add(TimePoint span_begin, TimePoint span_end, Track* track) {
  auto& list = track->intervals;
  const TimePoint begin = std::max(span_begin, track->folded_to), end = std::max(span_end, begin);
  // Spans mostly arrive in order; extending the last one keeps lists short without sorting.
  if (!list.empty() && begin >= list.back().first && begin <= list.back().second) {
    list.back().second = std::max(list.back().second, end);
  } else {
    list.emplace_back(begin, end);
    if (list.size() >= kMaxIntervals) Shorten(track);
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
  // Mostly they are in order already, and this is done for every call twice.
  if (!std::is_sorted(intervals->begin(), intervals->end())) std::sort(intervals->begin(), intervals->end());
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

Clock::duration SpanLog::Total(const Track& track) {
  auto merged = track.intervals;
  Merge(&merged);
  Clock::duration total = track.folded;
  for (const auto& [begin, end] : merged) total += end - begin;
  return total;
}

void SpanLog::Fill(TimePoint now, Timing* timing) const {
  timing->origin = origin_;
  timing->wall_us = Micros(now - origin_);
  double sum = 0, longest = 0;
  const auto limits = [&](Stage stage) {
    if (timing->of(stage) <= longest) return;
    longest = timing->of(stage);
    timing->bottleneck = StageName(stage);
  };
  for (size_t stage = 1; stage < tracks_.size(); ++stage) {
    if (tracks_[stage].intervals.empty()) continue;  // what was folded left the younger half here
    timing->stage_us[stage] = Micros(Total(tracks_[stage]));
    if (static_cast<Stage>(stage) == Stage::kQueue) continue;
    sum += timing->stage_us[stage];
    limits(static_cast<Stage>(stage));
  }
  if (!covered_.intervals.empty()) {
    const Clock::duration other = now - origin_ - Total(covered_);
    timing->stage_us[static_cast<size_t>(Stage::kOther)] = std::max(0.0, Micros(other));
    limits(Stage::kOther);
  }
  const double queue = std::max(0.0, timing->of(Stage::kQueue));
  if (sum > 0 && timing->wall_us > queue) timing->overlap = sum / (timing->wall_us - queue);
  timing->spans = spans_;
  timing->spans_dropped = dropped_;
}

}  // namespace tilewire::engine

// Collects the spans of a job and reduces them to stage times.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "server/base/timing.h"

namespace tilewire::engine {

/// Union of spans by stage and of all together, in bounded memory: exact unless a span comes later than some
/// 2,000 disjoint younger ones of its union (then its part among them is not counted). Thread-compatible: its
/// job's mutex guards it.
class SpanLog {
 public:
  /// `origin`: when the job arrived. `keep`: whether single spans are wanted (at most kMaxTraceSpans are
  /// kept).
  SpanLog(TimePoint origin, bool keep) : origin_(origin), keep_(keep) {}

  /// Of any stage but kOther, which has no spans.
  void Add(const Span& span);
  TimePoint origin() const { return origin_; }

  /// Fills stage_us, wall_us, overlap, bottleneck, spans, spans_dropped and origin as tilewire.v1.Timing
  /// defines them.
  void Fill(TimePoint now, Timing* timing) const;

 private:
  using Interval = std::pair<TimePoint, TimePoint>;
  struct Track {
    std::vector<Interval> intervals;
    /// Intervals before this point are only a sum any more; nothing before it counts again.
    TimePoint folded_to = TimePoint::min();
    Clock::duration folded{0};
  };
  static void Add(TimePoint begin, TimePoint end, Track* track);
  static void Merge(std::vector<Interval>* intervals);
  /// The union's length.
  static Clock::duration Total(const Track& track);
  /// Keeps a track short: merges, and when that does not help enough turns the older half into its sum.
  static void Shorten(Track* track);
  /// Intervals that a stage keeps, at most. A client chooses how many messages it sends, so spans are many.
  static constexpr size_t kMaxIntervals = 4096;

  TimePoint origin_;
  bool keep_;
  std::array<Track, static_cast<size_t>(Stage::kOther)> tracks_;
  Track covered_;  ///< by any stage, from the origin on
  std::vector<Span> spans_;
  uint64_t dropped_ = 0;  ///< spans beyond the bound
};

}  // namespace tilewire::engine

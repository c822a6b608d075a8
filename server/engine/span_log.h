// Collects the spans of a job and reduces them to stage times.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "server/base/timing.h"

namespace tilewire::engine {

/// Union of spans by stage, in bounded memory. Thread-compatible: its job's mutex guards it.
class SpanLog {
 public:
  /// `origin`: when the job arrived. `keep`: whether single spans are wanted (at most kMaxTraceSpans are
  /// kept).
  SpanLog(TimePoint origin, bool keep) : origin_(origin), keep_(keep) {}

  void Add(const Span& span);
  TimePoint origin() const { return origin_; }

  /// Fills stage_us, wall_us, overlap, bottleneck, spans and origin as tilewire.v1.Timing defines them.
  void Fill(TimePoint now, Timing* timing) const;

 private:
  using Interval = std::pair<TimePoint, TimePoint>;
  static void Merge(std::vector<Interval>* intervals);
  static constexpr size_t kMergeAt = 4096;

  TimePoint origin_;
  bool keep_;
  std::array<std::vector<Interval>, kStageCount> intervals_;
  std::array<size_t, kStageCount> merge_at_{};
  std::vector<Span> spans_;
};

}  // namespace tilewire::engine

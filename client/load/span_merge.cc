#include "client/load/span_merge.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace tilewire::load {
namespace {

std::tuple<std::string_view, std::string_view, std::string_view> KindOf(const DrawnSpan& span) {
  return {span.process, span.track, span.stage};
}

/// Whether each span is to be joined to the one before it.
std::vector<bool> Joined(const std::vector<DrawnSpan>& spans, size_t too_many) {
  std::vector<std::pair<double, size_t>> gaps;
  double end = 0;  // of the spans of a kind so far
  for (size_t i = 0; i < spans.size(); ++i) {
    const bool next = i > 0 && KindOf(spans[i]) == KindOf(spans[i - 1]);
    if (next) gaps.emplace_back(std::max(0.0, spans[i].begin_us - end), i);
    end = next ? std::max(end, spans[i].end_us) : spans[i].end_us;
  }
  too_many = std::min(too_many, gaps.size());
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(too_many), gaps.end());
  std::vector<bool> joined(spans.size(), false);
  for (size_t k = 0; k < too_many; ++k) joined[gaps[k].second] = true;
  return joined;
}

}  // namespace

void MergeSpans(size_t at_most, std::vector<DrawnSpan>* spans) {
  std::stable_sort(spans->begin(), spans->end(), [](const DrawnSpan& a, const DrawnSpan& b) {
    return std::tuple_cat(KindOf(a), std::tuple(a.begin_us)) <
           std::tuple_cat(KindOf(b), std::tuple(b.begin_us));
  });
  for (DrawnSpan& span : *spans) span.busy_us = span.end_us - span.begin_us;
  if (spans->size() <= at_most) return;
  const std::vector<bool> joined = Joined(*spans, spans->size() - at_most);
  std::vector<DrawnSpan> merged;
  merged.reserve(at_most);
  for (size_t i = 0; i < spans->size(); ++i) {
    DrawnSpan& span = (*spans)[i];
    if (!joined[i]) {
      merged.push_back(std::move(span));
      continue;
    }
    DrawnSpan& last = merged.back();
    last.busy_us += std::max(0.0, span.end_us - std::max(span.begin_us, last.end_us));
    last.end_us = std::max(last.end_us, span.end_us);
    ++last.spans;
  }
  *spans = std::move(merged);
}

}  // namespace tilewire::load

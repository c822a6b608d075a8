// The calls of a study that it shows span by span.
#include <algorithm>
#include <array>
#include <utility>

#include "client/load/study.h"

namespace tilewire::load {
namespace {

/// Of which the typical one is kept.
constexpr size_t kTracedCalls = 5;

struct TracedCall {
  double seconds;
  client::Reply reply;
};

/// False when the study must end. A call that failed or is wrong counts among those that were measured.
bool TraceCall(const StudyServer& server, const StudyPlace& place, const Tuning& tuning,
               const std::stop_token& stop, std::vector<TracedCall>* calls, StudyResult* result) {
  const LoadClock::time_point begin = LoadClock::now();
  Answer answer = server.trace(place, tuning, stop);
  answer.TimesUnlessTold(begin);
  answer.Settle();
  if (stop.stop_requested()) {
    result->interrupted = true;
    return false;
  }
  if (!answer.status.ok() || !answer.right) {
    result->points.back().stats.Add(answer, answer.seconds() * 1e6, answer.seconds() * 1e6);
  } else if (answer.reply && answer.reply->trace) {
    calls->push_back({answer.seconds(), *std::move(answer.reply)});
  }
  result->lost = answer.status.code() == Code::kUnavailable;
  return !result->lost;
}

}  // namespace

bool TracePlace(const StudyServer& server, const StudyPlace& place, const std::stop_token& stop,
                StudyResult* result) {
  const auto best = Recommend(result->points, place.via);
  if (!server.trace || !best) return true;
  std::array<std::vector<TracedCall>, 2> calls;  // with overlap, without
  for (size_t i = 0; i < 2 * kTracedCalls; ++i) {
    Tuning tuning = best->tuning;
    tuning.sequential = i % 2 == 1;
    if (!TraceCall(server, place, tuning, stop, &calls[i % 2], result)) return false;
  }
  for (auto& kept : calls) {
    if (kept.empty()) continue;
    const auto middle = kept.begin() + static_cast<std::ptrdiff_t>(kept.size() / 2);
    std::ranges::nth_element(kept, middle, {}, &TracedCall::seconds);
    result->traces.push_back({place, &kept == calls.data(), std::move(middle->reply)});
  }
  return true;
}

}  // namespace tilewire::load

#include "client/load/statistics.h"

#include <algorithm>

namespace tilewire::load {

std::string ErrorKey(const Status& status) {
  std::string key(CodeName(status.code()));
  // gRPC's own errors have no reason of ours; a code said twice tells nothing.
  if (!status.reason().empty() && status.reason() != key) key += "/" + std::string(status.reason());
  return key;
}

void CallStats::AddError(const std::string& key, uint64_t count) {
  failed += count;
  const bool room = errors.size() < kMaxErrorKinds || errors.contains(key);
  errors[room ? key : "OTHER"] += count;
}

void CallStats::Add(const Answer& answer, double latency_us, double service_us) {
  if (!answer.status.ok()) return AddError(ErrorKey(answer.status), 1);
  latency.Add(latency_us);
  service.Add(service_us);
  if (!answer.right) {
    ++wrong;
    return;
  }
  ++good;
  bytes += answer.bytes;
  resident_bytes += answer.resident_bytes;
  region_bytes += answer.region_bytes;
  if (!answer.reply) return;
  const client::Timing& t = answer.reply->timing;
  const std::array observed{t.queue_us,  t.receive_us, t.stage_us, t.h2d_us,
                            t.kernel_us, t.d2h_us,     t.send_us,  t.other_us};
  static_assert(observed.size() == kStageNames.size());
  for (size_t i = 0; i < observed.size(); ++i)
    if (observed[i]) stages[i].Add(*observed[i]);
  if (t.overlap) overlap.Add(*t.overlap);
  if (!t.bottleneck.empty() && (bottlenecks.size() < kMaxErrorKinds || bottlenecks.contains(t.bottleneck)))
    ++bottlenecks[t.bottleneck];
}

void CallStats::Merge(const CallStats& other) {
  good += other.good;
  wrong += other.wrong;
  for (const auto& [key, count] : other.errors) AddError(key, count);
  bytes += other.bytes;
  resident_bytes += other.resident_bytes;
  region_bytes += other.region_bytes;
  latency.Merge(other.latency);
  service.Merge(other.service);
  for (size_t i = 0; i < stages.size(); ++i) stages[i].Merge(other.stages[i]);
  overlap.Merge(other.overlap);
  for (const auto& [name, count] : other.bottlenecks) bottlenecks[name] += count;
}

void Timeline::Add(double t, const Answer& answer, double latency_us) {
  while (t >= step_seconds_ * static_cast<double>(kMaxSteps)) {
    for (size_t i = 0; i < steps_.size(); i += 2) {
      Step pair = std::move(steps_[i]);
      if (i + 1 < steps_.size()) {
        const Step& second = steps_[i + 1];
        pair.calls += second.calls;
        pair.good += second.good;
        pair.errors += second.errors;
        pair.bytes += second.bytes;
        pair.latency.Merge(second.latency);
      }
      steps_[i / 2] = std::move(pair);
    }
    steps_.resize((steps_.size() + 1) / 2);
    step_seconds_ *= 2;
  }
  const auto index = static_cast<size_t>(std::max(t, 0.0) / step_seconds_);
  if (index >= steps_.size()) steps_.resize(std::min(index, kMaxSteps - 1) + 1);
  Step& step = steps_[std::min(index, kMaxSteps - 1)];
  ++step.calls;
  if (answer.status.ok()) {
    step.latency.Add(latency_us);
  } else {
    ++step.errors;
  }
  if (!answer.status.ok() || !answer.right) return;
  ++step.good;
  step.bytes += answer.bytes;
}

CallStats Measured::total() const {
  CallStats total;
  for (const CallStats& stats : operations) total.Merge(stats);
  return total;
}

}  // namespace tilewire::load

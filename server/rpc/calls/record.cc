#include "server/rpc/calls/record.h"

#include <algorithm>
#include <utility>

#include "server/rpc/listener/peer.h"

namespace tilewire::rpc {
namespace {

/// By what its client did. What a busy server refuses is not that.
bool CameToNothing(const Status& status) {
  switch (status.code()) {
    case Code::kCancelled:
    case Code::kInvalidArgument:
    case Code::kUnimplemented:
    case Code::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

/// Its job's timing as that of the whole call: the stages are over, what came after them is in none.
void LastTo(TimePoint end, TimePoint arrived, Timing* timing) {
  const double job_us =
      std::exchange(timing->wall_us, std::chrono::duration<double, std::micro>(end - arrived).count());
  const auto receive = timing->stage_us.begin() + static_cast<int>(Stage::kReceive);
  const auto other = timing->stage_us.begin() + static_cast<int>(Stage::kOther);
  if (*other < 0) return;
  *other += timing->wall_us - job_us;
  if (*other > *std::max_element(receive, other)) timing->bottleneck = StageName(Stage::kOther);
}

}  // namespace

void Record::Start(const Metadata* metadata, TimePoint arrived) {
  metadata_ = metadata;
  arrived_ = arrived;
  if (shared_->account_of) account_ = shared_->account_of(metadata_->peer);
  if (account_) account_->calls.fetch_add(1, std::memory_order_relaxed);
  if (metadata_->own) return;
  came_ = shared_->engine->timer().Now();
  shared_->last_arrival.store(came_, std::memory_order_relaxed);
  shared_->observer->OnCallStart(told_.method);
}

Timing Record::WithDistance(Timing timing) const {
  const double round_trip_us = account_ ? account_->round_trip_us.load() : -1;
  if (round_trip_us < 0) return timing;
  timing.round_trip_us = round_trip_us;
  const double receive_us = timing.of(Stage::kReceive);
  if (window_ == 0 || receive_us <= 0 || timing.bytes_in == 0) return timing;
  // A stream sends a window in a round trip at most; its job's other streams are taken to be alike.
  const double bytes = static_cast<double>(timing.bytes_in) / std::max(timing.streams, 1u);
  const double round_trips = bytes / static_cast<double>(window_);
  timing.window_share = std::min(1.0, round_trips * round_trip_us / receive_us);
  return timing;
}

void Record::End(const Status& status, Timing timing, bool of_stream) {
  told_.status = status;
  told_.timing = std::move(timing);
  told_.timing.spans.clear();
  LastTo(Clock::now(), arrived_, &told_.timing);
  told_.bytes_in = told_.timing.bytes_in;
  told_.bytes_out = status.ok() ? told_.timing.bytes_out : left_;
  if (!of_stream) Moved(unmoved_ + told_.bytes_out);
}

void Record::Moved(uint64_t bytes) const {
  const UseLimits& limits = shared_->connection_use;
  if (account_ && limits.bytes_per_second > 0 && bytes > 0)
    account_->use.Moved(limits, bytes, shared_->engine->timer().Now());
}

bool Record::HadNoTime() const {
  constexpr std::chrono::milliseconds kNone{10};
  const auto left = metadata_->TimeLeft();
  return left && *left + (Clock::now() - arrived_) < kNone;
}

void Record::Tell() {
  if (account_) {
    const bool never_came = told_.status.code() == Code::kDeadlineExceeded && !took_ && HadNoTime();
    if (CameToNothing(told_.status) || never_came) account_->failed.fetch_add(1, std::memory_order_relaxed);
    account_->ended.fetch_add(1, std::memory_order_release);
  }
  if (metadata_->own) return;
  told_.request_id = metadata_->request_id;
  told_.traceparent = metadata_->traceparent;
  told_.peer = PeerName(metadata_->peer);
  told_.identity = metadata_->identity;
  told_.caller = metadata_->share;
  shared_->observer->OnCallEnd(told_);
}

}  // namespace tilewire::rpc

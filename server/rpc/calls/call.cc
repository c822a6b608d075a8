#include "server/rpc/calls/call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/array/busy.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/crew.h"

namespace tilewire::rpc {
namespace {

// What takes longer to read than to refuse.
constexpr size_t kHeavyMessageBytes = 32 << 10;

engine::OwnLimits OwnLimitsOf(const PolicyLimits& limits) {
  return {.rates = {.calls_per_second = static_cast<double>(limits.calls_per_second),
                    .bytes_per_second = static_cast<double>(limits.bytes_per_second)},
          .max_in_flight = limits.max_in_flight,
          .queue_length = limits.queue_length,
          .device_bytes = limits.device_bytes};
}

}  // namespace

Call::~Call() {
  passage_.reset();  // before anybody may think that the last call is gone
  if (!record_.started()) return;
  record_.SetStatus(cancellation_.OnRecord(record_.status()));
  idle_watch_.Stop();
  record_.Tell();
  if (!streams_as_.empty()) shared_->streams.Leave(streams_as_);
  if (in_connection_) record_.account()->use.Leave(is_stream_);
  job_.Drop();  // with its leases, but where a queue's thread still looks after it (Awaited)
  shared_->running.End(this);
}

void Call::Started() {
  const TimePoint arrived = Clock::now();
  metadata_ = ReadMetadata(&context_, *shared_, shared_->probe_token);
  cancellation_.Start(shared_from_this(), &metadata_, arrived);
  shared_->running.Begin(weak_from_this());
  record_.Start(&metadata_, arrived);
  if (metadata_.own) return;
  EnterConnection();
  if (!metadata_.refused.ok()) return;
  if (metadata_.judged_by->policy) ruling_ = metadata_.judged_by->policy->For(metadata_.identity);
  metadata_.refused = ruling_.MayCall(record_.method());
  if (!is_stream_ || !metadata_.refused.ok()) return;
  if (const int most = own_limits().streams; most > 0) {
    metadata_.refused = shared_->streams.Enter(metadata_.share, most);
    if (metadata_.refused.ok()) streams_as_ = metadata_.share;
  }
}

void Call::EnterConnection() {
  is_stream_ = is_stream();
  if (!record_.account() || !shared_->connection_use.any()) return;
  Status status = record_.account()->use.Enter(shared_->connection_use, is_stream_, record_.came());
  in_connection_ = status.ok();
  if (metadata_.refused.ok()) metadata_.refused = std::move(status);  // who calls is asked first
}

PolicyLimits Call::own_limits() const {
  return ruling_.limits();
}

QueueTask<Result<std::shared_ptr<engine::Job>>> Call::OpenJob(engine::OperationPtr operation,
                                                              engine::JobOptions options, bool drained) {
  record_.SetOperation(operation->name());
  if (shared_->running.draining() && !drained)
    co_return Fail(Status(Code::kUnavailable, "DRAINING", "the server is draining; try another"));
  int64_t bytes = operation->payload_bytes();
  for (const ArraySpec& operand : operation->operands()) bytes += operand.bytes();
  if (Status status = ruling_.MayRun(operation->name(), bytes); !status.ok())
    co_return Fail(std::move(status));
  const PolicyLimits limits = ruling_.limits();
  options.own = OwnLimitsOf(limits);
  options.own_arrays = {.count = limits.arrays, .bytes = limits.array_bytes};
  options.identity = metadata_.identity;
  options.share = metadata_.share;
  options.arrived = record_.arrived();
  if (const auto left = metadata_.TimeLeft()) options.deadline = engine().timer().Now() + *left;
  auto job = co_await job_.Open(queue_, std::move(operation), std::move(options));
  if (job) record_.SetJob((*job)->id());
  co_return job;
}

Result<std::shared_ptr<engine::Job>> Call::JoinJob(const std::string& id) {
  record_.SetJoins();
  constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed and logged must stay short
  if (id.size() > kLongestId)
    return BadValue("join.job", std::to_string(id.size()) + " characters", "an id as in Opened.job");
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<engine::Job> job, engine().Find(id, identity()));
  record_.SetJob(id);
  record_.SetOperation(job->operation().name());
  TILEWIRE_RETURN_IF_ERROR(job_.Join(job));
  return job;
}

Status Call::FinalStatus(const Status& status) const {
  const Status reason = job_.reason();
  return reason.ok() ? status : reason;
}

void Call::Ended(const Status& status, std::optional<Timing> timing) {
  passage_.reset();
  if (!timing) {
    const auto job = job_.get();
    // A joined stream tells only that it was there.
    timing = job && stream_number() == 0 ? TimingOf(*job) : Timing();
  }
  record_.End(status, *std::move(timing), is_stream());
  AddRetryPushback(status, &context_);
}

Throttle& Call::throttle() {
  return shared_->throttles[static_cast<size_t>(weight_)];
}

const std::shared_ptr<Turn>& Call::turn() {
  return (account() ? account()->turns : shared_->turns)[static_cast<size_t>(weight_)];
}

Status Call::Comes(JobClass job) {
  const bool heavy = job == JobClass::kBulk || message_bytes_ > kHeavyMessageBytes;
  const Weight weight = heavy ? Weight::kHeavy : Weight::kLight;
  job_class_ = job;
  if (passage_ && weight_ == weight) return {};
  if (passage_) passage_->Leaves();
  weight_ = weight;
  ConnectionAccount* const account = record_.account().get();
  passage_.emplace(&throttle(), &turn()->waiting);
  if (account != nullptr) account->CountBrought(weight, job == JobClass::kBulk);
  LookAround();
  return HeldBack();
}

void Call::LookAround() {
  const TimePoint now = engine().timer().Now();
  if (!throttle().IsDue(now)) return;
  // What waits already came from all connections that are to be asked.
  const Unread unread = shared_->count_unread(now);
  if (throttle().Look(now, weight_ == Weight::kLight ? unread.light : unread.heavy)) Crew::OneOfEachFirst();
}

Status Call::IsComing() {
  if (!account()) return {};
  came_ = Clock::now();
  Status status = account()->brings_heavy() ? HeavyIsComing() : LightIsComing();
  if (!status.ok()) account()->turned_away.fetch_add(1, std::memory_order_relaxed);
  return status;
}

Status Call::HeavyIsComing() {
  weight_ = Weight::kHeavy;
  job_class_ = account()->last_is_bulk.load(std::memory_order_relaxed) ? JobClass::kBulk : JobClass::kSmall;
  LookAround();
  if (Status status = HeldBackEarly(); !status.ok()) return status;
  const auto hold = throttle().Refuses(engine().timer().Now(), turn().get());
  return hold ? Behind(job_class_, *hold, false) : Status();
}

Status Call::LightIsComing() {
  // Who has heavy ones, too, has perhaps one now.
  if (throttle().share() >= 1 || account()->heavy_in_a_row.load(std::memory_order_relaxed) > 0) return {};
  LookAround();
  if (Status status = HeldBackEarly(); !status.ok()) return status;
  const TimePoint now = engine().timer().Now();
  if (now >= account()->behind.load(std::memory_order_relaxed)) return {};
  const auto hold = throttle().WillBeOld(now, turn().get());
  return hold ? Behind(job_class_, *hold, false) : Status();
}

Status Call::HeldBackEarly() {
  Status status = HeldBack();
  if (!status.ok()) throttle().CountAsked();
  return status;
}

Status Call::HeldBack() {
  const TimePoint now = engine().timer().Now();
  const ConnectionAccount* const account = record_.account().get();
  const int coming = account != nullptr ? account->KeptWaiting(now) : 0;
  const auto hold = throttle().Asks(turn(), now, coming);
  return hold ? Behind(job_class_, *hold, true) : Status();
}

Status Call::IsOld() {
  if (throttle().share() >= 1) return {};
  const TimePoint now = engine().timer().Now();
  const bool read_late = came_ != TimePoint{} && now < account()->behind.load(std::memory_order_relaxed);
  const auto hold =
      throttle().IsOld(Clock::now() - (read_late ? came_ : record_.arrived()), now, turn().get());
  return hold ? Behind(job_class_, *hold, false) : Status();
}

void Call::FoundNoPlace(const Status& status) {
  // Of all BUSY this one alone: what is a caller's own concerns no other call.
  if (status.message().starts_with(engine::kQueueFull) && status.detail()->field.empty())
    passage_->FindsNoPlace();
}

Status Call::RefusedLate(JobClass job, const std::string& share) {
  const auto& limits = engine().options();
  const int places = limits.max_in_flight_per_identity > 0
                         ? std::min(limits.max_in_flight, limits.max_in_flight_per_identity)
                         : limits.max_in_flight;
  const auto waits = backlog().Refuses(job, share, engine().timer().Now(), places);
  if (!waits) return {};
  passage_->FindsNoPlace();
  constexpr std::chrono::milliseconds kShortest{5}, kLongest{250};
  return Behind(job, {.waits = *waits, .hold = std::clamp<Clock::duration>(2 * *waits, kShortest, kLongest)},
                false);
}

Status Call::Behind(JobClass job, const Throttle::Hold& hold, bool others) {
  using Milliseconds = std::chrono::milliseconds;
  record_.SetShed(job);
  const std::string value = std::to_string(std::chrono::round<Milliseconds>(hold.waits).count()) + " ms";
  const int64_t hold_ms = std::chrono::ceil<Milliseconds>(hold.hold).count();
  const std::string message = "the server is behind: calls wait " + value + " before they begin";
  if (!others) return Busy(message + " (--late-ms)", hold_ms);
  const auto late = std::chrono::round<Milliseconds>(backlog().late()).count();
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = message + "; hold others back, too",
                 .field = std::string(job == JobClass::kSmall ? kSmallCallsWait : kBulkCallsWait),
                 .value = value,
                 .allowed = std::to_string(late) + " ms (--late-ms)",
                 .retry_after_ms = hold_ms});
}

Status Call::LateStatus(Late why) const {
  const auto late = [](std::string text) { return Status(Code::kDeadlineExceeded, "IDLE", std::move(text)); };
  switch (why) {
    case Late::kNeverOpened:
      return late("no first message within --idle-seconds, or 10 s; the call was given up");
    case Late::kSlow:
      return late("others wait, and the job moved less than --least-rate, " +
                  std::to_string(static_cast<int64_t>(shared_->least_rate)) +
                  " bytes a second, for more than 10 s or --idle-seconds; it was given up");
    case Late::kIdle:
      break;
  }
  return late("no block of progress within --idle-seconds; the call was given up");
}

void Call::StartIdleWatch() {
  idle_watch_.Start(weak_from_this(), &engine().timer(),
                    {.idle_seconds = shared_->idle_seconds,
                     .block_bytes = engine().options().block_bytes,
                     .least_rate = shared_->least_rate},
                    {.sharers = [this] { return job_.streams(); },
                     .moved = [this]() -> uint64_t {
                       const auto job = job_.get();
                       return job ? job->moved() : 0;
                     },
                     .others_wait = [this] { return engine().AnybodyWaits(); },
                     .held_up =
                         [this] {
                           const auto job = job_.get();
                           return job && job->awaits_memory();
                         }},
                    [this](Late why, bool cut) { End(LateStatus(why), cut); });
}

}  // namespace tilewire::rpc

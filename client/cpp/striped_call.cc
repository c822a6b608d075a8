#include "client/cpp/striped_call.h"

#include <algorithm>
#include <system_error>

#include "client/cpp/convert.h"

namespace tilewire::client {
namespace {

constexpr uint64_t kHeaderRoom = 64 << 10;  ///< of a message, beside its payload
/// A guess, not measured yet: a connection should carry enough to be worth opening, and keeps a core busy
/// here and one at the server, which may be this machine too.
constexpr uint64_t kBytesAConnection = 32 << 20;
/// From afar: what is under way for the first round trips, until windows have grown (tests/bench,
/// "Distance").
constexpr uint64_t kBytesAFarConnection = 8 << 20;
constexpr uint32_t kMaxConnections = 8;
/// From there on a connection waits more than it works.
constexpr std::chrono::milliseconds kFar{2};
static_assert(kBytesWorthAskingDistance == 2 * kBytesAFarConnection,
              "with fewer it is one connection anyway");

/// Where to reach the server that runs the job, when a balancer may stand between: where this client reaches
/// it already, if that is one of its own addresses, or if none of those is of the kind that this client uses.
std::string JoinAddress(const v1::Opened& opened, const std::string& connected) {
  const auto& endpoints = opened.endpoints();
  if (endpoints.empty() || std::find(endpoints.begin(), endpoints.end(), connected) != endpoints.end())
    return connected;
  const bool local = connected.starts_with("unix:");
  const auto same_kind =
      std::find_if(endpoints.begin(), endpoints.end(),
                   [local](const std::string& endpoint) { return endpoint.starts_with("unix:") == local; });
  return same_kind == endpoints.end() ? connected : *same_kind;
}

/// What comes of each result.
std::vector<uint64_t> BytesOfEach(const CallSpec& spec) {
  std::vector<uint64_t> bytes;
  if (spec.results)
    for (const ArraySpec& result : *spec.results)
      bytes.push_back(spec.sends_result() ? static_cast<uint64_t>(result.bytes()) : 0);
  return bytes;
}

}  // namespace

uint32_t WorthwhileConnections(uint64_t bytes, uint32_t cores, std::chrono::nanoseconds round_trip) {
  const bool far = round_trip >= kFar;
  const auto most = far ? kMaxConnections : std::clamp(cores / 2, 1u, kMaxConnections);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(bytes / (far ? kBytesAFarConnection : kBytesAConnection), 1, most));
}

StripedCall::StripedCall(const CallSpec& spec, StreamChannels* channels, uint32_t connections)
    : spec_(spec),
      channels_(channels),
      connections_(std::max(connections, 1u)),
      stripe_(spec.sink, spec.options, spec.bytes_to_send(), BytesOfEach(spec)),
      first_(spec, &stripe_, channels->Take()) {}

Attempt StripedCall::Run() {
  const std::stop_callback on_stop(spec_.options.stop, [this] { CancelAll(); });
  Attempt attempt;
  const Status first = first_.RunFirst(
      connections_, [this](const v1::Opened& opened) { return OnOpened(opened); }, &attempt.reply);
  if (first.ok()) {
    AwaitOutput();
  } else {
    CancelAll();
  }
  // Those that are still on their way in are not needed.
  {
    const MutexLock lock(mutex_);
    over_ = true;
    for (Joiner& joiner : joiners_)
      if (first.ok() && !joiner.call->opened()) joiner.call->Cancel();
  }
  for (Joiner& joiner : joiners_) {
    joiner.thread.join();
    if (auto channel = joiner.call->TakeChannel()) channels_->Return(std::move(channel), joiner.address);
  }
  if (auto channel = first_.TakeChannel()) channels_->Return(std::move(channel));
  attempt.status = Verdict(first);
  if (attempt.status.ok() && !stripe_.complete())
    attempt.status = BadReply("the result has " + std::to_string(stripe_.received()) + " bytes, expected " +
                              std::to_string(stripe_.receive_total()));
  attempt.moved = stripe_.moved();
  return attempt;
}

Status StripedCall::OnOpened(const v1::Opened& opened) {
  uint64_t payload = std::clamp<uint64_t>(spec_.options.message_bytes, 4 << 10, 4 << 20);
  if (opened.max_message_bytes() > 2 * kHeaderRoom)
    payload = std::min(payload, opened.max_message_bytes() - kHeaderRoom);
  std::vector<uint64_t> sizes;
  for (const auto& source : spec_.sources) sizes.push_back(source.wire_bytes());
  stripe_.Start(Schedule(std::move(sizes), opened.block_bytes(), opened.window_bytes(), payload));

  const std::string address = JoinAddress(opened, channels_->address());
  const MutexLock lock(mutex_);
  for (uint32_t i = 1; i < std::min(connections_, opened.max_streams()) && !over_; ++i) {
    Joiner& joiner = joiners_.emplace_back();
    joiner.address = address;
    joiner.call = std::make_unique<StreamCall>(spec_, &stripe_, channels_->Take(address));
    try {
      joiner.thread = std::thread([this, &joiner, job = opened.job()] { Join(&joiner, job); });
    } catch (const std::system_error&) {  // no more threads for this process: fewer streams will do
      joiners_.pop_back();
      break;
    }
  }
  return {};
}

void StripedCall::Join(Joiner* joiner, const std::string& job) {
  joiner->status = joiner->call->RunJoined(job);
  if (MayGoWhereTheFirstWent(*joiner)) joiner->status = joiner->call->RunJoined(job);
  if (joiner->call->opened() && !joiner->status.ok()) CancelAll();
  const MutexLock lock(mutex_);
  joiner->ended = true;
  ended_.NotifyAll();
}

bool StripedCall::MayGoWhereTheFirstWent(Joiner& joiner) {
  const bool unreached = !joiner.call->opened() && joiner.status.code() == Code::kUnavailable;
  if (!unreached || joiner.address == channels_->address()) return false;
  const MutexLock lock(mutex_);
  if (over_) return false;
  joiner.address = channels_->address();
  joiner.call = std::make_unique<StreamCall>(spec_, &stripe_, channels_->Take(joiner.address));
  return true;
}

void StripedCall::AwaitOutput() {
  // A Result comes after every joined stream has ended at the server. Here one may not even have seen its
  // Joined yet, and still bring output: where no operand is sent nothing made the server wait for it.
  const MutexLock lock(mutex_);
  const auto ended = [](const Joiner& joiner) { return joiner.ended; };
  while (!stripe_.complete() && !std::ranges::all_of(joiners_, ended)) ended_.Wait(mutex_);
}

void StripedCall::CancelAll() {
  const MutexLock lock(mutex_);
  over_ = true;
  first_.Cancel();
  for (Joiner& joiner : joiners_) joiner.call->Cancel();
}

Status StripedCall::Verdict(const Status& first) const {
  // However a stream ends that was cancelled because it is not needed.
  if (first.ok() && stripe_.complete()) return first;
  const auto echoes = [](const Status& status) {
    return status.reason() == "STREAM_LOST" || status.code() == Code::kCancelled;
  };
  if (!echoes(first) && !first.ok()) return first;
  for (const Joiner& joiner : joiners_)
    if (joiner.call->opened() && !joiner.status.ok() && !echoes(joiner.status)) return joiner.status;
  if (!first.ok()) return first;
  for (const Joiner& joiner : joiners_)
    if (joiner.call->opened() && !joiner.status.ok()) return joiner.status;
  return {};
}

}  // namespace tilewire::client

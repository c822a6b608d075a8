#include "server/rpc/listener/arrivals.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/rpc/listener/round_trip.h"
#include "server/rpc/listener/tcp_facts.h"

namespace tilewire::rpc {
namespace {

constexpr std::chrono::seconds kTellEvery{10};
// By as much kernels mistake how long ago something came: a tick of 250 Hz.
constexpr std::chrono::milliseconds kTick{4};

}  // namespace

TimePoint CameAt(TimePoint after, TimePoint now, Clock::duration quiet) {
  const TimePoint known = now - quiet - kTick;
  // Whoever stood still while he waited knows nothing.
  return quiet >= 5 * kTick ? known : std::max(after, known);
}

bool Arrivals::Begin(Id id, FileDescriptor connection) {
  const int fd = connection.get();
  // No answer could make that window wider. All others are asked: a relay that ends TCP may be some way off
  // itself, and on a busy machine the next process is.
  const bool widest = WindowNeeded(TcpRoundTrip(fd)) >= kMostWideBytes;
  // Before it is sent: whoever is kept from running in between measures too little otherwise.
  const TimePoint since = Clock::now();
  const bool asked = !widest && !options_.greeting.empty() &&
                     send(fd, options_.greeting.data(), options_.greeting.size(),
                          MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(options_.greeting.size());
  if (asked)
    asked_[id] = {.connection = std::move(connection), .since = since};
  else
    Hand(id, std::move(connection), {});
  return asked;
}

bool Arrivals::Came(Id id, TimePoint after) {
  const auto found = asked_.find(id);
  return found != asked_.end() && HandAnswered(found, after, Clock::now());
}

bool Arrivals::HandAnswered(Waiting::iterator found, TimePoint after, TimePoint now) {
  const int fd = found->second.connection.get();
  const Acknowledged acknowledged = LookForAcknowledgement(fd);
  if (acknowledged == Acknowledged::kNotYet) return false;
  const bool answered = acknowledged == Acknowledged::kYes;
  HandAsked(found,
            answered ? CameAt(after, now, SinceReceived(fd)) - found->second.since : Clock::duration{});
  return true;
}

void Arrivals::HandAsked(Waiting::iterator found, Clock::duration answered_after) {
  auto asked = asked_.extract(found);
  Hand(asked.key(), std::move(asked.mapped().connection), answered_after);
}

std::vector<Arrivals::Id> Arrivals::GiveUp(TimePoint after, TimePoint now) {
  std::vector<Id> late;
  for (auto it = asked_.begin(); it != asked_.end();) {
    const auto found = it++;  // the others stay where they are when it goes
    if (now - found->second.since < acknowledge_within_) continue;
    late.push_back(found->first);
    // It may be here that nobody looked for so long.
    if (!HandAnswered(found, after, now)) HandAsked(found, {});
  }
  return late;
}

void Arrivals::Ended(Id id) {
  asked_.erase(id);
  places_.Return(id);
}

void Arrivals::Hand(Id id, FileDescriptor connection, Clock::duration answered_after) {
  const Clock::duration round_trip = std::max(TcpRoundTrip(connection.get()), answered_after);
  int64_t needed = WindowNeeded(round_trip), least = kLeastFarBytes;
  if (needed > 0 && options_.greeting.empty()) needed = least = kSealedWideBytes;
  const int64_t given = places_.Take(id, needed, least);
  measured_(id, round_trip, given);
  observer_->OnConnectionWindow(ClassOf(needed), ClassOf(given));
  if (ClassOf(given) != ClassOf(needed)) {
    ++narrowed_;
    if (const TimePoint now = Clock::now(); now >= tell_next_) {
      tell_next_ = now + kTellEvery;
      observer_->OnWarning("connections slower than their distance allows, now " +
                           std::to_string(narrowed_ - std::exchange(narrowed_told_, narrowed_)) +
                           ": no memory for wide windows is left (--distance-bytes)");
    }
  }
  hand_over_(std::move(connection), {.window = given, .beyond = true, .id = id});
}

}  // namespace tilewire::rpc

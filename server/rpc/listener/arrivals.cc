#include "server/rpc/listener/arrivals.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/rpc/listener/round_trip.h"
#include "server/rpc/listener/tcp_facts.h"

namespace tilewire::rpc {
namespace {

// Several of the longest round trips that anything is promised for.
constexpr std::chrono::milliseconds kLongestWait{400};
constexpr std::chrono::seconds kTellEvery{10};

}  // namespace

bool Arrivals::Begin(Id id, FileDescriptor connection) {
  const int fd = connection.get();
  // Whoever is far by TCP alone need not be asked.
  const Clock::duration by_tcp = TcpRoundTrip(fd);
  // Before it is sent: whoever is kept from running in between measures too little otherwise.
  const TimePoint since = Clock::now();
  const bool asked = !options_.greeting.empty() && WindowNeeded(by_tcp) == 0 &&
                     send(fd, options_.greeting.data(), options_.greeting.size(),
                          MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(options_.greeting.size());
  if (!asked) {
    Hand(id, std::move(connection), by_tcp);
    return false;
  }
  waiting_[id] = {.connection = std::move(connection), .since = since};
  return true;
}

bool Arrivals::Came(Id id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return false;
  const Acknowledged acknowledged = LookForAcknowledgement(found->second.connection.get());
  if (acknowledged == Acknowledged::kNotYet) return false;
  Waiting arrived = std::move(found->second);
  waiting_.erase(found);
  const Clock::duration by_tcp = TcpRoundTrip(arrived.connection.get());
  Hand(id, std::move(arrived.connection),
       acknowledged == Acknowledged::kYes ? std::max(by_tcp, Clock::now() - arrived.since) : by_tcp);
  return true;
}

std::vector<Arrivals::Id> Arrivals::GiveUp(TimePoint now) {
  std::vector<Id> late;
  for (const auto& [id, waiting] : waiting_)
    if (now - waiting.since >= kLongestWait) late.push_back(id);
  for (const Id id : late) {
    FileDescriptor connection = std::move(waiting_.at(id).connection);
    waiting_.erase(id);
    const Clock::duration by_tcp = TcpRoundTrip(connection.get());
    Hand(id, std::move(connection), by_tcp);
  }
  return late;
}

void Arrivals::Ended(Id id) {
  waiting_.erase(id);
  places_.Return(id);
}

void Arrivals::Hand(Id id, FileDescriptor connection, Clock::duration round_trip) {
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
  hand_over_(std::move(connection), {.window = given, .beyond = true});
}

}  // namespace tilewire::rpc

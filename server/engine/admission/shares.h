// How many of a class's places each of its callers may have while there are several.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/base/timing.h"

namespace tilewire::engine {

/// Turns in the queue alone leave whoever has many jobs in flight with most of the machine, since what was
/// let in shares it by job. So while several owners are active each has an even share of `places`, about as
/// many as keep the machine busy; who is alone has as many as there are. Active is who has a job that runs or
/// waits, or had one a moment ago. Thread-compatible.
class Shares {
 public:
  /// An owner counts for so long after his last job: who calls again and again is there between his calls.
  static constexpr std::chrono::seconds kRecent{1};
  /// Places of everybody, however many there are: the next job arrives while one is computed.
  static constexpr int kLeast = 2;
  /// Owners who now have all that is theirs, or no longer have.
  using Changed = std::vector<std::string>;

  /// 0: nobody is ever full.
  explicit Shares(int places = 0) : places_(places) {}

  /// A request of his is here, to wait or to be let in.
  Changed Came(const std::string& owner, TimePoint now);
  /// One that has come has a place.
  Changed Took(const std::string& owner);
  /// One that has come is over, where it had a place or not.
  Changed Left(const std::string& owner, bool took, TimePoint now);
  /// Time has passed, and nobody came or left.
  Changed Looked(TimePoint now);
  /// When that may change something; none where nobody lacks a place.
  std::optional<TimePoint> Due() const;
  /// Whether he has all the places that are his.
  bool Full(const std::string& owner) const;

 private:
  struct Owner;
  using Owners = std::map<std::string, Owner>;
  struct Owner {
    int here = 0, took = 0;
    bool full = false;
    TimePoint last;
    std::list<Owners::iterator>::iterator place;
  };

  int Most() const;
  void Touch(Owners::iterator owner, TimePoint now);
  /// Without those who were here long ago.
  void Forget(TimePoint now);
  /// Looks anew at him, or at all where each one's share was another `before`.
  Changed Review(int before, Owners::iterator owner);
  void Look(Owners::iterator owner, int most, Changed* changed);

  int places_;
  int full_ = 0;  ///< owners
  Owners owners_;
  std::list<Owners::iterator> latest_;  ///< by `last`, or by when it was looked at
};

}  // namespace tilewire::engine

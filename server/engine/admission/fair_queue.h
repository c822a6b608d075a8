// A queue that several owners share: each has a line of its own, and they take turns.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>

namespace tilewire::engine {

/// Deficit round robin by cost: whose turn it is gets a quantum of credit, is served as far as that goes, and
/// the next one's turn comes. So owners who all wait are served equal costs, up to one request each, and
/// within a line who came first, by ascending ids, comes first. Thread-compatible.
class FairQueue {
 public:
  using Id = uint64_t;

  /// What a request costs at least, and what a turn is worth: no turn serves more than one of these.
  static constexpr int64_t kQuantum = 64 << 10;

  /// Into its owner's line, behind those of lower ids; not twice.
  void Push(Id id, const std::string& owner, int64_t cost);
  /// Takes out one that is served, which its owner pays for. He may be in debt, where it was not his turn.
  void Serve(Id id);
  /// Takes out one that is not served. The credit that its owner saved for it is lost.
  void Remove(Id id);
  /// An owner who is held has no turns. He need not wait for anything.
  void Hold(const std::string& owner);
  void Resume(const std::string& owner);

  /// Whether nobody waits but those who are held.
  bool empty() const { return turns_.empty(); }
  /// Whose turn it is: stays the same until that one goes or its owner is held. 0 where it is empty.
  Id Head();
  /// The first in line of each owner who is not held, in the order of their turns; the head first.
  std::list<Id> Firsts();

 private:
  struct Request {
    Id id;
    int64_t cost;
  };
  struct Line {
    std::list<Request> requests;
    int64_t credit = 0;
    bool held = false;
    bool in_turn = false;  ///< it is in turns_
  };
  using Lines = std::map<std::string, Line>;
  struct Place {
    Lines::iterator line;
    std::list<Request>::iterator request;
  };

  /// Credit that the first of a line lacks, in turns.
  static int64_t TurnsLacking(const Line& line);
  /// Puts a line among those who have turns, or out of them, or forgets it, as it now is.
  void Settle(Lines::iterator line);
  void Erase(std::map<Id, Place>::iterator place);

  Lines lines_;  ///< of those who wait or are held
  std::list<Lines::iterator> turns_;
  bool credited_ = false;  ///< the first of these has had the credit of this turn
  std::map<Id, Place> places_;
};

}  // namespace tilewire::engine

// Places for jobs that are open while their memory is nobody's yet.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "server/engine/admission/fair_queue.h"

namespace tilewire::engine {

/// Who has a place is open: it may send its first bytes, which wait in gRPC's memory until it gets its own.
/// So places are few. Owners who wait for one take turns; who has none yet may have one where all are taken,
/// up to as many again, so that nobody is kept out by others who send nothing. Thread-compatible.
class Orders {
 public:
  using Id = FairQueue::Id;

  explicit Orders(int places) : places_(places) {}

  /// Whether one that comes now has a place at once.
  bool Free(const std::string& owner, int most) const;
  /// It has one, until Leave(). `most`: of that owner; 0: no bound of his own.
  void Take(const std::string& owner, int most);
  void Leave(const std::string& owner);
  /// It waits for one, until Remove(), since it was `served` or not.
  void Wait(Id id, const std::string& owner, int most);
  void Remove(Id id, bool served);
  /// Who of those that wait may have a place now; 0: nobody.
  Id Next();

 private:
  struct Owner {
    int has = 0, waits = 0;
    int most = 0;  ///< as the latest said
  };
  using Owners = std::map<std::string, Owner>;

  bool Full() const { return taken_ >= places_; }
  /// His turns, or that he is forgotten.
  void Settle(Owners::iterator owner);

  const int places_;
  int taken_ = 0;
  Owners owners_;  ///< who have a place or wait for one
  FairQueue queue_;
  std::map<Id, Owners::iterator> waiting_;
};

}  // namespace tilewire::engine

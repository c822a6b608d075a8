#include "server/engine/admission/orders.h"

namespace tilewire::engine {

bool Orders::Free(const std::string& owner, int most) const {
  const auto it = owners_.find(owner);
  const int has = it == owners_.end() ? 0 : it->second.has;
  if (it != owners_.end() && it->second.waits > 0) return false;
  if (most > 0 && has >= most) return false;
  return Full() ? has == 0 && taken_ < 2 * places_ : queue_.empty();
}

void Orders::Take(const std::string& owner, int most) {
  const auto it = owners_.try_emplace(owner).first;
  it->second.most = most;
  ++it->second.has;
  ++taken_;
  Settle(it);
}

void Orders::Leave(const std::string& owner) {
  const auto it = owners_.find(owner);
  --it->second.has;
  --taken_;
  Settle(it);
}

void Orders::Wait(Id id, const std::string& owner, int most) {
  const auto it = owners_.try_emplace(owner).first;
  it->second.most = most;
  ++it->second.waits;
  waiting_.emplace(id, it);
  queue_.Push(id, owner, FairQueue::kQuantum);
  Settle(it);
}

void Orders::Remove(Id id, bool served) {
  const auto waiting = waiting_.find(id);
  const auto owner = waiting->second;
  waiting_.erase(waiting);
  served ? queue_.Serve(id) : queue_.Remove(id);
  --owner->second.waits;
  Settle(owner);
}

Orders::Id Orders::Next() {
  if (!Full()) return queue_.Head();
  if (taken_ >= 2 * places_) return 0;
  for (const Id id : queue_.Firsts())
    if (waiting_.at(id)->second.has == 0) return id;
  return 0;
}

void Orders::Settle(Owners::iterator owner) {
  const Owner& his = owner->second;
  const bool all = his.most > 0 && his.has >= his.most;
  all&& his.waits > 0 ? queue_.Hold(owner->first) : queue_.Resume(owner->first);
  if (his.has == 0 && his.waits == 0) owners_.erase(owner);
}

}  // namespace tilewire::engine

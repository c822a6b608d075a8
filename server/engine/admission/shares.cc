#include "server/engine/admission/shares.h"

#include <algorithm>
#include <limits>

namespace tilewire::engine {

int Shares::Most() const {
  if (owners_.size() < 2) return std::numeric_limits<int>::max();
  return std::max(kLeast, places_ / static_cast<int>(owners_.size()));
}

void Shares::Touch(Owners::iterator owner, TimePoint now) {
  owner->second.last = now;
  latest_.splice(latest_.end(), latest_, owner->second.place);
}

void Shares::Forget(TimePoint now) {
  while (!latest_.empty() && now - latest_.front()->second.last >= kRecent) {
    const Owners::iterator oldest = latest_.front();
    if (oldest->second.here > 0) {
      Touch(oldest, now);
      continue;
    }
    latest_.pop_front();
    full_ -= oldest->second.full;
    owners_.erase(oldest);
  }
}

Shares::Changed Shares::Came(const std::string& owner, TimePoint now) {
  if (places_ == 0) return {};
  const int before = Most();
  const auto [it, is_new] = owners_.try_emplace(owner);
  if (is_new) it->second.place = latest_.insert(latest_.end(), it);
  ++it->second.here;
  Touch(it, now);
  Forget(now);
  return Review(before, it);
}

Shares::Changed Shares::Took(const std::string& owner) {
  if (places_ == 0) return {};
  const auto it = owners_.find(owner);
  ++it->second.took;
  return Review(Most(), it);
}

Shares::Changed Shares::Left(const std::string& owner, bool took, TimePoint now) {
  if (places_ == 0) return {};
  const int before = Most();
  const auto it = owners_.find(owner);
  --it->second.here;
  it->second.took -= took;
  Touch(it, now);
  Forget(now);
  return Review(before, it);
}

Shares::Changed Shares::Looked(TimePoint now) {
  const int before = Most();
  Forget(now);
  return owners_.empty() ? Changed{} : Review(before, owners_.begin());
}

std::optional<TimePoint> Shares::Due() const {
  if (full_ == 0) return std::nullopt;
  return latest_.front()->second.last + kRecent;
}

bool Shares::Full(const std::string& owner) const {
  const auto it = owners_.find(owner);
  return it != owners_.end() && it->second.full;
}

Shares::Changed Shares::Review(int before, Owners::iterator owner) {
  Changed changed;
  const int most = Most();
  if (most == before) {
    Look(owner, most, &changed);
  } else {
    for (auto it = owners_.begin(); it != owners_.end(); ++it) Look(it, most, &changed);
  }
  return changed;
}

void Shares::Look(Owners::iterator owner, int most, Changed* changed) {
  const bool full = owner->second.took >= most;
  if (full == owner->second.full) return;
  owner->second.full = full;
  full_ += full ? 1 : -1;
  changed->push_back(owner->first);
}

}  // namespace tilewire::engine

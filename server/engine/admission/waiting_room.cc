#include "server/engine/admission/waiting_room.h"

namespace tilewire::engine {

void WaitingRoom::Recount(const std::string& owner, size_t before, size_t now) {
  if (before > 0) by_count_.erase({before, owner});
  if (now > 0) by_count_.emplace(now, owner);
}

void WaitingRoom::Add(Id id, const std::string& owner) {
  auto& ids = by_owner_[owner];
  const size_t before = ids.size();
  ids.insert(id);
  Recount(owner, before, ids.size());
  ++size_;
}

void WaitingRoom::Remove(Id id, const std::string& owner) {
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end() || found->second.erase(id) == 0) return;
  const size_t now = found->second.size();
  Recount(owner, now + 1, now);
  if (now == 0) by_owner_.erase(found);
  --size_;
}

size_t WaitingRoom::Count(const std::string& owner) const {
  const auto found = by_owner_.find(owner);
  return found == by_owner_.end() ? 0 : found->second.size();
}

WaitingRoom::Id WaitingRoom::WhoMakesRoomFor(const std::string& owner) const {
  if (by_count_.empty()) return 0;
  const auto& [most, longest] = *by_count_.rbegin();
  return Count(owner) + 1 < most ? *by_owner_.at(longest).rbegin() : 0;
}

}  // namespace tilewire::engine

#include "server/rpc/identity/verified_jwts.h"

namespace tilewire::rpc {

std::optional<JwtClaims> VerifiedJwts::Find(const Sha256& token) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(token);
  if (found == kept_.end()) return std::nullopt;
  return found->second;
}

void VerifiedJwts::Keep(const Sha256& token, const JwtClaims& claims, double now) {
  const MutexLock lock(mutex_);
  if (kept_.size() >= kMost) {
    std::erase_if(kept_, [now](const auto& each) { return each.second.until <= now; });
    if (kept_.size() >= kMost) kept_.clear();
  }
  kept_.insert_or_assign(token, claims);
}

size_t VerifiedJwts::size() const {
  const MutexLock lock(mutex_);
  return kept_.size();
}

}  // namespace tilewire::rpc

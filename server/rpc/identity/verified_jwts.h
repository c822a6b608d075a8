// Tokens whose signatures were found good, so that a caller who sends one with each call pays for it once. No
// gRPC here.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "server/base/mutex.h"
#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {

/// What a token says that is signed.
struct JwtClaims {
  std::string name;            ///< its `sub`
  double from = 0, until = 0;  ///< seconds since 1970, with the clocks' difference: good in [from, until)
};

/// By the hash of the whole token: whoever asks for one had it. Thread-safe.
class VerifiedJwts {
 public:
  static constexpr size_t kMost = 1024;

  std::optional<JwtClaims> Find(const Sha256& token) const;
  /// Where there is no room, those go whose time is over at `now`, and if there are none, all.
  void Keep(const Sha256& token, const JwtClaims& claims, double now);
  size_t size() const;

 private:
  mutable Mutex mutex_;
  std::map<Sha256, JwtClaims> kept_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc

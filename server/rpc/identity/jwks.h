// Bearer tokens that another authority signs (JWT, RFC 7519): the operator's file of its public keys, and
// what a token must say. No gRPC here.
//
// The file is a JWK set (RFC 7517), {"keys": [...]}. A key has one algorithm (jws_key.h), and a token's
// header must say the same: what it says decides nothing. Signatures are OpenSSL's work, JSON is nlohmann's.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/array/status.h"
#include "server/rpc/identity/jws_key.h"
#include "server/rpc/identity/tokens.h"
#include "server/rpc/identity/verified_jwts.h"

namespace tilewire::rpc {

/// As long as metadata of a call may be.
constexpr size_t kMaxJwtBytes = 8192;

/// What the operator decided of all tokens.
struct JwtRules {
  std::string issuer, audience;
  std::chrono::duration<double> skew = std::chrono::seconds(60);  ///< that clocks may differ
};

/// Whether a bearer token has the form of a JWT: three parts between dots.
bool LooksLikeJwt(std::string_view token);

/// One reading of the file, and what was found good by it. Thread-safe.
class Jwks {
 public:
  /// Of a file's text. INVALID_ARGUMENT with what is wrong, where it is, and what is allowed; nothing of a
  /// key is told. Each key that signs must have a `kid` of its own, if there are several. No key at all is
  /// fine: then no token is good.
  static Result<Jwks> Parse(std::string_view text, const JwtRules& rules);

  /// The caller's name, the `sub` of a token: 1 to 256 printable characters. UNAUTHENTICATED `IDENTITY`, with
  /// the reason and nothing of the token, where it is malformed or too long, of no key here, not signed by
  /// that key, has an extension that must be understood (`crit`), is of another type than JWT, of another
  /// issuer or for others, or is not good yet or any more; `exp` must be there.
  Result<std::string> Check(std::string_view token, WallTime now) const;

  size_t size() const { return keys_.size(); }

 private:
  Result<JwtClaims> Verify(std::string_view token) const;
  /// The key that the header of a token names, or the only one where it names none.
  Result<const JwsKey*> KeyOf(std::string_view header) const;
  Result<JwtClaims> ClaimsOf(std::string_view payload) const;

  JwtRules rules_;
  std::map<std::string, JwsKey, std::less<>> keys_;  ///< by `kid`; empty: of the only one
  std::unique_ptr<VerifiedJwts> verified_ = std::make_unique<VerifiedJwts>();
};

}  // namespace tilewire::rpc

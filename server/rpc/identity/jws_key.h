// One key by which signatures of tokens are checked: its form in JSON (RFC 7517, 7518, 8037), and OpenSSL's
// verdict. No gRPC here.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/array/status.h"

namespace tilewire::rpc {

/// A public key, and with it the one algorithm that its signatures have: RSA is RS256, the curve P-256 is
/// ES256, Ed25519 is EdDSA. Immutable, so thread-safe.
class JwsKey {
 public:
  /// None: a key for something else than signatures. INVALID_ARGUMENT, naming `where` and never a value of
  /// the key, where it is no such key, too weak, or not public: one that signs, or that all sides share
  /// ("oct"), is a secret and has no place among these.
  static Result<std::optional<JwsKey>> Parse(const std::string& where, const nlohmann::json& jwk);

  /// "RS256", "ES256" or "EdDSA".
  std::string_view algorithm() const { return algorithm_; }
  /// Whether a token that says `algorithm` can be of this key.
  bool Makes(std::string_view algorithm) const;
  /// Whether `signature`, as tokens have it, is this key's of `text`.
  bool Signed(std::string_view text, std::string_view signature) const;

 private:
  JwsKey(std::string_view algorithm, std::shared_ptr<EVP_PKEY> key)
      : algorithm_(algorithm), key_(std::move(key)) {}

  std::string_view algorithm_;
  std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace tilewire::rpc

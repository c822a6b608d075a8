// Who calls: a kind and a name. The kind says who vouches for the name, so that a token called "ann" and a
// certificate for "ann" are two callers. All that is owned, logged and limited goes by the text form. No gRPC
// here.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::rpc {

enum class IdentityKind : uint8_t {
  kAnonymous,  ///< nobody vouches for anybody
  kSpiffe,     ///< a certificate's URI "spiffe://DOMAIN/PATH"
  kDns,        ///< a certificate's first DNS name
  kCn,         ///< the common name of a certificate that has no other name
  kToken,      ///< a line of --tokens
  kJwt,        ///< a token that a key of --jwks signed
  kUid,        ///< a user of this machine, by the socket
  kHeader,     ///< what a trusted proxy says
};

struct Identity {
  IdentityKind kind = IdentityKind::kAnonymous;
  std::string name;  ///< 1 to kMaxIdentityBytes printable ASCII characters; of anonymous callers empty

  /// "anonymous", "spiffe://DOMAIN/PATH", else kind and name: "dns:NAME", "token:NAME". No two identities
  /// have the same.
  std::string Text() const;
  bool operator==(const Identity&) const = default;
};

constexpr size_t kMaxIdentityBytes = 256;

/// Whether `name` may stand for somebody, in logs too.
bool IsIdentityName(std::string_view name);

/// Whether a name looks like a pattern, of those that are none: one with `*`, but for DNS names, which
/// certificates may have for all below a domain ("*.example.com").
bool HasPattern(const Identity& identity);

/// The text form back. INVALID_ARGUMENT, naming `field`, where it is none.
Result<Identity> ParseIdentity(std::string_view field, std::string_view text);

/// The names in a certificate that was verified; each list in the certificate's order.
struct CertificateNames {
  std::vector<std::string> uris, dns;
  std::string common_name;
  /// When it is over: TLS may take up a session from before without looking. None: nobody can say.
  std::optional<std::chrono::system_clock::time_point> ends;
};

/// Whom a certificate names: its SPIFFE id, else its first DNS name, else its common name. UNAUTHENTICATED
/// `IDENTITY` where it names nobody, or has several SPIFFE ids: which one was meant nobody can tell.
Result<Identity> IdentityOf(const CertificateNames& certificate);

/// UNAUTHENTICATED `IDENTITY`: `field` is `value`. Never with a secret in `value`.
tl::unexpected<Status> Unauthenticated(std::string_view field, std::string_view value,
                                       std::string_view allowed, std::string_view message);

}  // namespace tilewire::rpc

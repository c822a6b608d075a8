// The one place that decides who calls, by what a call and its connection present. No gRPC here.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/status.h"
#include "server/rpc/identity/identity.h"
#include "server/rpc/identity/jwks.h"
#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {

/// The values of a metadata key: how many, and the first of them, which is all that is ever looked at.
struct PresentedValues {
  size_t count = 0;
  std::string_view first;

  void Add(std::string_view value) {
    if (count++ == 0) first = value;
  }
};

/// What a call brings. Views of what lives as long as the call is judged.
struct Presented {
  std::optional<CertificateNames> certificate;  ///< of the connection, verified; none: it showed none
  PresentedValues authorization;                ///< values of the metadata key `authorization`
  PresentedValues header;                       ///< values of the key IdentityRules::header
};

/// What the operator decided. Immutable while calls come.
struct IdentityRules {
  std::string header;                     ///< by which proxies name callers, lower case; empty: none does
  std::vector<Identity> trusted_proxies;  ///< who may: nobody else's header is looked at
  bool anonymous = true;                  ///< whether callers without any name are let in
};

/// By what bearer tokens are judged; null: none of that kind are taken.
struct BearerFiles {
  const Tokens* tokens = nullptr;
  const Jwks* jwks = nullptr;
};

/// Who calls:
/// - A token or a certificate that is there must be good: what is invalid never counts as absent. A token
///   names the caller before the certificate does, which may be that of its machine.
/// - A certificate that is over is not good, though it was when the connection began.
/// - Where one of the two (or, without either, `anonymous`) is a trusted proxy, the header names the caller,
///   and must be there, once. Elsewhere it means nothing.
/// - Without any of them the caller is anonymous, where that is allowed.
/// - Where both kinds of tokens are taken, one with two dots is a JWT, and never the other kind.
/// UNAUTHENTICATED `IDENTITY` where nobody knows who calls. Where the server takes no tokens they say nothing
/// and are not looked at, as `authorization` may belong to a proxy's own scheme.
Result<Identity> Identify(const Presented& presented, const IdentityRules& rules, const BearerFiles& files,
                          WallTime now);

/// Whether by these rules its token alone says who calls, whatever else the call and its connection are: no
/// certificate and no proxy has a say. Then Identify() says the same of the same token, of the kind that
/// `tokens` has, for as long as that is right.
bool TokenAloneDecides(const Presented& presented, const IdentityRules& rules, const BearerFiles& files);

}  // namespace tilewire::rpc

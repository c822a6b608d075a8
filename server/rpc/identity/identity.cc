#include "server/rpc/identity/identity.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tilewire::rpc {
namespace {

constexpr std::string_view kAnonymous = "anonymous", kSpiffe = "spiffe://";

/// What stands before names, but for anonymous callers, who have none, and SPIFFE ids, which are URIs.
constexpr std::array<std::pair<IdentityKind, std::string_view>, 6> kPrefixes{
    {{IdentityKind::kDns, "dns:"},
     {IdentityKind::kCn, "cn:"},
     {IdentityKind::kToken, "token:"},
     {IdentityKind::kJwt, "jwt:"},
     {IdentityKind::kUid, "uid:"},
     {IdentityKind::kHeader, "header:"}}};

std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

Result<Identity> Named(IdentityKind kind, std::string name, std::string_view what) {
  if (IsIdentityName(name)) return Identity{kind, std::move(name)};
  return Unauthenticated("certificate", std::string(what) + " that cannot be a name",
                         "1 to " + std::to_string(kMaxIdentityBytes) + " printable ASCII characters",
                         "the client's certificate has " + std::string(what) +
                             " that is empty, too long or not printable ASCII");
}

}  // namespace

std::string Identity::Text() const {
  if (kind == IdentityKind::kAnonymous) return std::string(kAnonymous);
  for (const auto& [known, prefix] : kPrefixes)
    if (kind == known) return std::string(prefix) + name;
  return name;
}

bool IsIdentityName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxIdentityBytes &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

bool HasPattern(const Identity& identity) {
  std::string_view name = identity.name;
  if (identity.kind == IdentityKind::kDns && name.starts_with("*.")) name.remove_prefix(1);
  return name.find('*') != name.npos;
}

Result<Identity> ParseIdentity(std::string_view field, std::string_view text) {
  if (text == kAnonymous) return Identity{};
  if (IsIdentityName(text) && text.starts_with(kSpiffe) && text.size() > kSpiffe.size())
    return Identity{IdentityKind::kSpiffe, std::string(text)};
  for (const auto& [kind, prefix] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    const std::string_view name = text.substr(prefix.size());
    if (!IsIdentityName(name)) break;
    return Identity{kind, kind == IdentityKind::kDns ? Lower(std::string(name)) : std::string(name)};
  }
  return BadValue(
      field, text,
      "anonymous, spiffe://DOMAIN/PATH, or dns:, cn:, token:, jwt:, uid: or header: and a name of 1 to " +
          std::to_string(kMaxIdentityBytes) + " printable ASCII characters");
}

Result<Identity> IdentityOf(const CertificateNames& certificate) {
  const auto is_spiffe = [](const std::string& uri) { return uri.starts_with(kSpiffe); };
  const auto& uris = certificate.uris;
  if (const auto count = std::count_if(uris.begin(), uris.end(), is_spiffe); count > 1)
    return Unauthenticated("certificate", std::to_string(count) + " SPIFFE ids", "one",
                           "the client's certificate has several SPIFFE ids");
  if (const auto id = std::find_if(uris.begin(), uris.end(), is_spiffe); id != uris.end())
    return Named(IdentityKind::kSpiffe, *id, "a SPIFFE id");
  if (!certificate.dns.empty())
    return Named(IdentityKind::kDns, Lower(certificate.dns.front()), "a DNS name");
  return Named(IdentityKind::kCn, certificate.common_name, "a common name, and no other,");
}

tl::unexpected<Status> Unauthenticated(std::string_view field, std::string_view value,
                                       std::string_view allowed, std::string_view message) {
  return Fail(Status({.code = Code::kUnauthenticated,
                      .reason = "IDENTITY",
                      .message = std::string(message),
                      .field = std::string(field),
                      .value = std::string(value),
                      .allowed = std::string(allowed)}));
}

}  // namespace tilewire::rpc

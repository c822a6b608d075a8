#include "server/rpc/identity/rules.h"

#include <algorithm>
#include <utility>

namespace tilewire::rpc {
namespace {

std::string Times(size_t count) {
  return "there " + std::to_string(count) + " times";
}

/// Schemes are compared without case (RFC 9110).
bool TakeBearer(std::string_view* text) {
  constexpr std::string_view kScheme = "bearer ";
  if (text->size() < kScheme.size()) return false;
  const bool bearer = std::equal(kScheme.begin(), kScheme.end(), text->begin(), [](char wanted, char c) {
    return wanted == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  });
  if (bearer) text->remove_prefix(kScheme.size());
  return bearer;
}

Result<Identity> OfToken(const PresentedValues& values, const BearerFiles& files, WallTime now) {
  const auto refuse = [](const std::string& value) {
    return Unauthenticated("authorization", value, "Bearer and a token, once",
                           "the metadata key authorization is " + value);
  };
  if (values.count != 1) return refuse(Times(values.count));
  std::string_view token = values.first;
  if (!TakeBearer(&token)) return refuse("not a bearer token");
  if (files.jwks != nullptr && (files.tokens == nullptr || LooksLikeJwt(token))) {
    TILEWIRE_ASSIGN_OR_RETURN(std::string subject, files.jwks->Check(token, now));
    return Identity{IdentityKind::kJwt, std::move(subject)};
  }
  TILEWIRE_ASSIGN_OR_RETURN(std::string name, files.tokens->Check(token, now));
  return Identity{IdentityKind::kToken, std::move(name)};
}

Result<Identity> OfHeader(const PresentedValues& values, const std::string& header) {
  const auto refuse = [&](const std::string& value) {
    return Unauthenticated(header, value,
                           "1 to " + std::to_string(kMaxIdentityBytes) + " printable ASCII characters, once",
                           "the header " + header + ", which names the caller, is " + value +
                               "; the server's proxy must set it, once");
  };
  if (values.count == 0) return refuse("missing");
  if (values.count > 1) return refuse(Times(values.count));
  const std::string_view value = values.first;
  if (value.empty()) return refuse("empty");
  if (value.size() > kMaxIdentityBytes) return refuse(std::to_string(value.size()) + " characters long");
  if (!IsIdentityName(value)) return refuse("not printable");
  return Identity{IdentityKind::kHeader, std::string(value)};
}

}  // namespace

Result<Identity> Identify(const Presented& presented, const IdentityRules& rules, const BearerFiles& files,
                          WallTime now) {
  std::optional<Identity> machine, bearer;
  if (presented.certificate && presented.certificate->ends && now >= *presented.certificate->ends)
    return Unauthenticated("certificate", "expired", "one that is good now",
                           "the client's certificate has expired since it connected first");
  if (presented.certificate) {
    TILEWIRE_ASSIGN_OR_RETURN(machine, IdentityOf(*presented.certificate));
  }
  const bool takes_tokens = files.tokens != nullptr || files.jwks != nullptr;
  if (takes_tokens && presented.authorization.count > 0) {
    if (rules.header.empty())
      return OfToken(presented.authorization, files, now);  // nobody speaks for others
    TILEWIRE_ASSIGN_OR_RETURN(bearer, OfToken(presented.authorization, files, now));
  }
  if (!machine && !bearer) machine.emplace();  // anonymous
  const auto is_proxy = [&rules](const std::optional<Identity>& identity) {
    const auto& proxies = rules.trusted_proxies;
    return identity && std::find(proxies.begin(), proxies.end(), *identity) != proxies.end();
  };
  if (!rules.header.empty() && (is_proxy(machine) || is_proxy(bearer)))
    return OfHeader(presented.header, rules.header);
  if (bearer) return *std::move(bearer);
  if (*machine != Identity{} || rules.anonymous) return *std::move(machine);
  return Unauthenticated("credentials", "missing",
                         takes_tokens ? "a token or a client certificate" : "a client certificate",
                         "the server wants to know who calls, and the call does not say");
}

bool TokenAloneDecides(const Presented& presented, const IdentityRules& rules, const BearerFiles& files) {
  return files.tokens != nullptr && presented.authorization.count == 1 && rules.header.empty() &&
         !presented.certificate;
}

}  // namespace tilewire::rpc

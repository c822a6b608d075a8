#include "server/rpc/identity/jwks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "server/rpc/identity/base64url.h"
#include "server/rpc/identity/identity.h"
#include "server/rpc/identity/strict_json.h"

namespace tilewire::rpc {
namespace {

using nlohmann::json;

constexpr size_t kMostKeys = 256, kMaxKidBytes = 256;

tl::unexpected<Status> Refused(std::string_view why) {
  return Unauthenticated("authorization", why,
                         "Bearer and a JWT by --jwks, --jwt-issuer and --jwt-audience that is good now",
                         "the token is " + std::string(why));
}

tl::unexpected<Status> WrongSet(const std::string& what) {
  return Fail(Status(Code::kInvalidArgument, "BAD_VALUE", what));
}

/// A part of a token: an object in JSON. Nothing of it is told.
std::optional<json> ObjectOf(std::string_view part) {
  const auto text = DecodeBase64Url(part);
  if (!text) return std::nullopt;
  auto parsed = ParseStrictJson(*text);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  return *std::move(parsed);
}

const std::string* TextIn(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

/// Types are names of media, which have no case, and whose beginning may be left out (RFC 7515, 9068).
bool IsJwtType(std::string type) {
  for (char& c : type)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  constexpr std::string_view kMedia = "application/";
  if (type.starts_with(kMedia)) type.erase(0, kMedia.size());
  return type == "jwt" || type == "at+jwt";
}

bool IsFor(const json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  if (found->is_array()) return std::find(found->begin(), found->end(), json(audience)) != found->end();
  return *found == json(audience);
}

double SecondsOf(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

bool LooksLikeJwt(std::string_view token) {
  return std::count(token.begin(), token.end(), '.') == 2;
}

Result<Jwks> Jwks::Parse(std::string_view text, const JwtRules& rules) {
  TILEWIRE_ASSIGN_OR_RETURN(const json set, ParseStrictJson(text));
  const auto keys = set.is_object() ? set.find("keys") : set.end();
  if (!set.is_object() || keys == set.end() || !keys->is_array())
    return WrongSet("the file has no list of keys; allowed: {\"keys\": [...]}");
  if (keys->size() > kMostKeys)
    return WrongSet("keys are " + std::to_string(keys->size()) + "; allowed: at most " +
                    std::to_string(kMostKeys));
  Jwks parsed;
  parsed.rules_ = rules;
  for (size_t i = 0; i < keys->size(); ++i) {
    const std::string where = "keys[" + std::to_string(i) + "]";
    TILEWIRE_ASSIGN_OR_RETURN(auto key, JwsKey::Parse(where, (*keys)[i]));
    if (!key) continue;
    const std::string* const kid = TextIn((*keys)[i], "kid");
    if ((*keys)[i].contains("kid") && (!kid || kid->empty() || kid->size() > kMaxKidBytes))
      return WrongSet(where + ".kid is no name; allowed: a text of 1 to " + std::to_string(kMaxKidBytes) +
                      " bytes");
    if (!parsed.keys_.emplace(kid ? *kid : std::string(), *std::move(key)).second)
      return WrongSet(where + ".kid is another key's, too; allowed: one for each");
  }
  if (parsed.keys_.size() > 1 && parsed.keys_.contains(""))
    return WrongSet("a key has no kid; allowed: one for each of several keys");
  return parsed;
}

Result<std::string> Jwks::Check(std::string_view token, WallTime now) const {
  if (token.size() > kMaxJwtBytes) return Refused("longer than " + std::to_string(kMaxJwtBytes) + " bytes");
  const double seconds = SecondsOf(now);
  const Sha256 hash = Sha256Of(token, "");
  auto claims = verified_->Find(hash);
  if (!claims) {
    TILEWIRE_ASSIGN_OR_RETURN(claims, Verify(token));
    verified_->Keep(hash, *claims, seconds);
  }
  if (seconds >= claims->until) return Refused("expired");
  if (seconds < claims->from) return Refused("not good yet");
  return std::move(claims->name);
}

Result<JwtClaims> Jwks::Verify(std::string_view token) const {
  if (!LooksLikeJwt(token)) return Refused("no JWT");
  const size_t first = token.find('.'), second = token.rfind('.');
  const auto signature = DecodeBase64Url(token.substr(second + 1));
  if (!signature || signature->empty()) return Refused("malformed");
  TILEWIRE_ASSIGN_OR_RETURN(const JwsKey* const key, KeyOf(token.substr(0, first)));
  if (!key->Signed(token.substr(0, second), *signature)) return Refused("not signed by its key");
  return ClaimsOf(token.substr(first + 1, second - first - 1));
}

Result<const JwsKey*> Jwks::KeyOf(std::string_view header) const {
  const auto said = ObjectOf(header);
  if (!said) return Refused("malformed");
  const std::string *const algorithm = TextIn(*said, "alg"), *const kid = TextIn(*said, "kid"),
                           *const type = TextIn(*said, "typ");
  if (!algorithm) return Refused("malformed");
  if (said->contains("crit")) return Refused("with an extension that is unknown here");
  if (said->contains("typ") && (!type || !IsJwtType(*type))) return Refused("of another type than JWT");
  if (said->contains("kid") && !kid) return Refused("malformed");
  // Which key was meant is plain without a name only where there is one.
  const auto found = kid ? keys_.find(*kid) : keys_.size() == 1 ? keys_.begin() : keys_.end();
  if (found == keys_.end()) return Refused("of no known key");
  if (!found->second.Makes(*algorithm)) return Refused("of another algorithm than its key");
  return &found->second;
}

Result<JwtClaims> Jwks::ClaimsOf(std::string_view payload) const {
  const auto said = ObjectOf(payload);
  if (!said) return Refused("malformed");
  const std::string *const issuer = TextIn(*said, "iss"), *const subject = TextIn(*said, "sub");
  if (!issuer || *issuer != rules_.issuer) return Refused("of another issuer");
  if (!IsFor(*said, rules_.audience)) return Refused("for another audience");
  const auto expires = said->find("exp"), begins = said->find("nbf");
  if (expires == said->end() || !expires->is_number()) return Refused("without a time when it expires");
  if (begins != said->end() && !begins->is_number()) return Refused("malformed");
  if (!subject || !IsIdentityName(*subject))
    return Refused("without a name in sub of 1 to " + std::to_string(kMaxIdentityBytes) +
                   " printable ASCII characters");
  const double skew = rules_.skew.count();
  const double from =
      begins == said->end() ? -std::numeric_limits<double>::infinity() : begins->get<double>() - skew;
  return JwtClaims{.name = *subject, .from = from, .until = expires->get<double>() + skew};
}

}  // namespace tilewire::rpc

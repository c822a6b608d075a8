// Tokens that another authority signs: which are good, and whom they name.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/rpc/identity/base64url.h"
#include "server/rpc/identity/jwks.h"
#include "tests/unit/jwt.h"

namespace tilewire::rpc {
namespace {

using tilewire::testing::Base64Url;
using tilewire::testing::json;
using tilewire::testing::KeySet;
using tilewire::testing::SigningKey;

constexpr int64_t kNow = 1'800'000'000;
const JwtRules kRules{.issuer = "https://issuer", .audience = "tilewire", .skew = std::chrono::seconds(60)};

WallTime At(double seconds) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(seconds)));
}

json Claims() {
  return {{"iss", "https://issuer"}, {"aud", "tilewire"}, {"sub", "ann"}, {"exp", kNow + 600}};
}

Jwks Parsed(const std::vector<json>& keys) {
  auto parsed = Jwks::Parse(KeySet(keys), kRules);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().ToString());
  return *std::move(parsed);
}

/// The name, or why not.
std::string Judged(const Jwks& jwks, const std::string& token, double now = kNow) {
  const auto name = jwks.Check(token, At(now));
  if (name) return *name;
  EXPECT_EQ(name.error().code(), Code::kUnauthenticated);
  EXPECT_EQ(name.error().reason(), "IDENTITY");
  EXPECT_EQ(name.error().detail()->field, "authorization");
  return name.error().detail()->value;
}

/// Made once: RSA takes its time.
struct Keys {
  const SigningKey rsa = SigningKey::Rsa(), ec = SigningKey::Ec(), ed = SigningKey::Ed();
  const std::vector<std::pair<std::string, const SigningKey*>> all{{"r", &rsa}, {"e", &ec}, {"o", &ed}};
  Jwks Set() const { return Parsed({rsa.Jwk("r"), ec.Jwk("e"), ed.Jwk("o")}); }
};

const Keys& Made() {
  static const Keys keys;
  return keys;
}

json Header(const std::string& algorithm, const std::string& kid) {
  return {{"alg", algorithm}, {"kid", kid}, {"typ", "JWT"}};
}

TEST(Base64Url, HasOneTextForEachRowOfBytes) {
  EXPECT_EQ(DecodeBase64Url(""), "");
  EXPECT_EQ(DecodeBase64Url("Zg"), "f");
  EXPECT_EQ(DecodeBase64Url("Zm8"), "fo");
  EXPECT_EQ(DecodeBase64Url("Zm9v"), "foo");
  EXPECT_EQ(DecodeBase64Url("-_8"), "\xfb\xff");
  for (const std::string wrong : {"Z", "Zg==", "Zh", "Zm9", "Zm9v\n", " Zg", "Zm+v", "Zm/v", "Zm9vZ"})
    EXPECT_FALSE(DecodeBase64Url(wrong)) << wrong;
}

TEST(Jwt, EachAlgorithmLetsItsCallersIn) {
  const Jwks jwks = Made().Set();
  EXPECT_EQ(jwks.size(), 3u);
  for (const auto& [kid, key] : Made().all)
    EXPECT_EQ(Judged(jwks, key->Sign(Header(key->algorithm(), kid), Claims())), "ann") << kid;
  EXPECT_EQ(Judged(jwks, Made().ed.Sign(Header("Ed25519", "o"), Claims())), "ann") << "its newer name";
  // Where there is one key it need not be named, on neither side.
  json nameless = Made().ec.Jwk("");
  nameless.erase("kid");
  for (const Jwks& alone : {Parsed({nameless}), Parsed({Made().ec.Jwk("e")})}) {
    EXPECT_EQ(Judged(alone, Made().ec.Sign({{"alg", "ES256"}}, Claims())), "ann");
    EXPECT_EQ(Judged(alone, Made().ec.Sign(Header("ES256", "x"), Claims())), "of no known key");
  }
  EXPECT_EQ(Judged(jwks, Made().ec.Sign({{"alg", "ES256"}}, Claims())), "of no known key");
}

TEST(Jwt, TheKeyDecidesTheAlgorithmAndNeverTheHeader) {
  const Jwks jwks = Made().Set();
  for (const auto& [kid, key] : Made().all) {
    for (const std::string said : {"none", "None", "", "HS256", "HS512", "RS256", "RS384", "PS256", "ES256",
                                   "es256", "ES384", "EdDSA", "Ed448"}) {
      if (said == key->algorithm()) continue;
      EXPECT_EQ(Judged(jwks, key->Sign(Header(said, kid), Claims())), "of another algorithm than its key")
          << said << " " << kid;
    }
    const std::string unsigned_text =
        Base64Url(Header("none", kid).dump()) + "." + Base64Url(Claims().dump());
    EXPECT_EQ(Judged(jwks, unsigned_text + "."), "malformed");
    EXPECT_EQ(Judged(jwks, unsigned_text + ".AAAA"), "of another algorithm than its key");
  }
  // A key that everybody knows is no secret to sign by.
  const std::string text = Base64Url(Header("HS256", "r").dump()) + "." + Base64Url(Claims().dump());
  const std::string shared = Made().rsa.Jwk("r")["n"].get<std::string>();
  std::string mac(32, '\0');
  EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, shared.data(), shared.size(),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
            reinterpret_cast<unsigned char*>(mac.data()), mac.size(), nullptr);
  EXPECT_EQ(Judged(jwks, text + "." + Base64Url(mac)), "of another algorithm than its key");
}

TEST(Jwt, WhatAnotherKeySignedIsNotItsOwn) {
  const Jwks jwks = Made().Set();
  const SigningKey strangers[] = {SigningKey::Rsa(), SigningKey::Ec(), SigningKey::Ed()};
  for (size_t i = 0; i < std::size(strangers); ++i) {
    const auto& [kid, key] = Made().all[i];
    EXPECT_EQ(Judged(jwks, strangers[i].Sign(Header(key->algorithm(), kid), Claims())),
              "not signed by its key");
    EXPECT_EQ(Judged(jwks, strangers[i].Sign(Header(key->algorithm(), "x"), Claims())), "of no known key");
    // What the token brings along counts for nothing.
    json header = Header(key->algorithm(), kid);
    header["jwk"] = strangers[i].Jwk(kid);
    header["jku"] = "https://elsewhere/keys";
    EXPECT_EQ(Judged(jwks, strangers[i].Sign(header, Claims())), "not signed by its key");
  }
}

TEST(Jwt, NoBitOfATokenMayBeAnother) {
  const Jwks jwks = Made().Set();
  for (const auto& [kid, key] : Made().all) {
    const std::string good = key->Sign(Header(key->algorithm(), kid), Claims());
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = bad[i] == 'A' ? 'B' : 'A';
      EXPECT_NE(Judged(jwks, bad), "ann") << kid << " " << i;
      bad = good;
      bad.erase(i, 1);
      EXPECT_NE(Judged(jwks, bad), "ann") << kid << " without " << i;
    }
    for (const std::string& bad : std::vector<std::string>{good + "=", good + ".", good + "A", " " + good,
                                                           "." + good, good + "\n", good + good})
      EXPECT_NE(Judged(jwks, bad), "ann") << kid;
    EXPECT_EQ(Judged(jwks, good), "ann");
  }
  for (const std::string none :
       {"", ".", "..", "...", "a.b", "ann.right", "a.b.c.d", "e30.e30.e30", "e30..e30"})
    EXPECT_NE(Judged(jwks, none), "ann") << none;
  EXPECT_EQ(Judged(jwks, std::string(kMaxJwtBytes + 1, 'a')), "longer than 8192 bytes");
  EXPECT_EQ(Judged(jwks, std::string(kMaxJwtBytes, '.')), "no JWT");
}

TEST(Jwt, HeadersThatMustBeUnderstoodAre) {
  const Jwks jwks = Made().Set();
  const auto with = [&](const char* key, const json& value) {
    json header = Header("ES256", "e");
    header[key] = value;
    return Judged(jwks, Made().ec.Sign(header, Claims()));
  };
  for (const std::string type : {"JWT", "jwt", "at+jwt", "application/at+JWT", "application/jwt"})
    EXPECT_EQ(with("typ", type), "ann") << type;
  for (const json& type : {json("JWE"), json("dpop+jwt"), json(""), json(1), json()})
    EXPECT_EQ(with("typ", type), "of another type than JWT") << type;
  for (const json& extensions : {json({"exp"}), json({"b64"}), json::array(), json()})
    EXPECT_EQ(with("crit", extensions), "with an extension that is unknown here") << extensions;
  EXPECT_EQ(with("kid", 7), "malformed");
  EXPECT_EQ(with("alg", 7), "malformed");
  EXPECT_EQ(with("more", "of it"), "ann") << "what need not be understood is not";
  EXPECT_EQ(Judged(jwks, Made().ec.Sign(json::array(), Claims())), "malformed");
  // A doubled key would be one thing here and another elsewhere.
  const std::string text =
      Base64Url(R"({"alg":"ES256","kid":"e","kid":"e"})") + "." + Base64Url(Claims().dump());
  EXPECT_EQ(Judged(jwks, text + "." + Made().ec.SignatureOf(text)), "malformed");
}

TEST(Jwt, ClaimsThatMustBeThereAre) {
  const Jwks jwks = Made().Set();
  struct Case {
    const char* key;
    json value;  ///< null: the claim is missing
    std::string told;
  };
  const std::string no_name = "without a name in sub of 1 to 256 printable ASCII characters",
                    no_end = "without a time when it expires";
  const std::vector<Case> all{{"iss", nullptr, "of another issuer"},
                              {"iss", "https://issuer/", "of another issuer"},
                              {"iss", "HTTPS://issuer", "of another issuer"},
                              {"iss", json({"https://issuer"}), "of another issuer"},
                              {"aud", nullptr, "for another audience"},
                              {"aud", "tilewired", "for another audience"},
                              {"aud", json::array(), "for another audience"},
                              {"aud", json({"a", "b"}), "for another audience"},
                              {"aud", json({{"tilewire", 1}}), "for another audience"},
                              {"aud", json({"a", "tilewire"}), "ann"},
                              {"exp", nullptr, no_end},
                              {"exp", std::to_string(kNow + 600), no_end},
                              {"exp", kNow + 600.5, "ann"},
                              {"exp", -1, "expired"},
                              {"exp", 1e300, "ann"},
                              {"nbf", std::to_string(kNow), "malformed"},
                              {"nbf", kNow - 1, "ann"},
                              {"nbf", 1e300, "not good yet"},
                              {"sub", nullptr, no_name},
                              {"sub", "", no_name},
                              {"sub", 7, no_name},
                              {"sub", "a\nb", no_name},
                              {"sub", "\xc3\xa4", no_name},
                              {"sub", std::string(257, 'a'), no_name},
                              {"sub", "auth0|5f7c8ec7c33c6c004bbafe82", "auth0|5f7c8ec7c33c6c004bbafe82"}};
  for (const Case& one : all) {
    json claims = Claims();
    if (one.value.is_null()) {
      claims.erase(one.key);
    } else {
      claims[one.key] = one.value;
    }
    EXPECT_EQ(Judged(jwks, Made().ec.Sign(Header("ES256", "e"), claims)), one.told) << one.key << one.value;
  }
  for (const std::string payload :
       {R"({"iss":"https://issuer","aud":"tilewire","sub":"eve","sub":"ann","exp":2000000000})",
        R"({"iss":"https://issuer","aud":"tilewire","sub":"ann","exp":1e999})", "[]", "null", ""}) {
    const std::string text = Base64Url(Header("ES256", "e").dump()) + "." + Base64Url(payload);
    EXPECT_EQ(Judged(jwks, text + "." + Made().ec.SignatureOf(text)), "malformed") << payload;
  }
}

TEST(Jwt, ClocksMayDifferSoMuchAndNoMore) {
  json claims = Claims();
  claims["nbf"] = kNow;
  claims["exp"] = kNow + 100;
  const std::string token = Made().ec.Sign(Header("ES256", "e"), claims);
  // The verdict of the clock is the same whether the signature was looked at or is remembered.
  for (const bool before : {false, true}) {
    for (const auto& [now, told] : std::vector<std::pair<double, std::string>>{
             {-60.5, "not good yet"}, {-60, "ann"}, {50, "ann"}, {159.5, "ann"}, {160, "expired"}}) {
      const Jwks jwks = Made().Set();
      if (before) Judged(jwks, token);
      EXPECT_EQ(Judged(jwks, token, kNow + now), told) << now;
    }
  }
}

TEST(VerifiedJwts, AreBounded) {
  VerifiedJwts verified;
  const auto hash = [](size_t i) { return Sha256Of(std::to_string(i), ""); };
  for (size_t i = 0; i < VerifiedJwts::kMost; ++i)
    verified.Keep(hash(i), {.name = "a", .until = i < 10 ? 1. : 3.}, 0);
  EXPECT_EQ(verified.size(), VerifiedJwts::kMost);
  EXPECT_EQ(verified.Find(hash(7))->name, "a");
  verified.Keep(hash(5000), {.name = "b", .until = 3}, 2);
  EXPECT_EQ(verified.size(), VerifiedJwts::kMost - 10 + 1) << "those whose time is over make room";
  EXPECT_FALSE(verified.Find(hash(7)));
  for (size_t i = 0; i < 10; ++i) verified.Keep(hash(6000 + i), {.name = "c", .until = 3}, 2);
  EXPECT_EQ(verified.size(), 1u) << "else all do";
  EXPECT_EQ(verified.Find(hash(6009))->name, "c");
}

TEST(Jwt, OnlyGoodSignaturesAreRemembered) {
  const std::string token = Made().ec.Sign(Header("ES256", "e"), Claims());
  const Jwks jwks = Made().Set();
  EXPECT_EQ(Judged(jwks, token), "ann");
  EXPECT_NE(Judged(jwks, token.substr(0, token.size() - 2)), "ann");
  EXPECT_EQ(Judged(Parsed({Made().rsa.Jwk("e")}), token), "of another algorithm than its key")
      << "each reading of the file remembers its own";
}

}  // namespace
}  // namespace tilewire::rpc

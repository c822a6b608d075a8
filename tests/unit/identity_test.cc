// Who calls, by what is presented: the rules as a table.
#include "server/rpc/identity/identity.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/identity/rules.h"
#include "server/rpc/identity/tokens.h"
#include "tests/unit/jwt.h"

namespace tilewire::rpc {
namespace {

using tilewire::testing::GoodClaims;
using tilewire::testing::json;
using tilewire::testing::KeySet;
using tilewire::testing::SigningKey;

TEST(IdentityText, KindsNeverCollide) {
  const std::vector<Identity> all{
      {IdentityKind::kAnonymous, ""},          {IdentityKind::kSpiffe, "spiffe://a/b"},
      {IdentityKind::kDns, "anonymous"},       {IdentityKind::kCn, "anonymous"},
      {IdentityKind::kCn, "spiffe://a/b"},     {IdentityKind::kToken, "anonymous"},
      {IdentityKind::kUid, "anonymous"},       {IdentityKind::kHeader, "anonymous"},
      {IdentityKind::kHeader, "token:ann"},    {IdentityKind::kToken, "ann"},
      {IdentityKind::kHeader, "spiffe://a/b"}, {IdentityKind::kJwt, "ann"},
      {IdentityKind::kJwt, "token:ann"},       {IdentityKind::kHeader, "jwt:ann"}};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(ParseIdentity("who", all[i].Text()), all[i]) << all[i].Text();
    for (size_t k = 0; k < i; ++k) EXPECT_NE(all[i].Text(), all[k].Text());
  }
}

TEST(IdentityText, WhatIsNoneIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("ann"), std::string("dns:"), std::string("spiffe://"),
        std::string("nobody:a"), std::string("token:a\nb"), "cn:" + std::string(kMaxIdentityBytes + 1, 'c'),
        std::string("Anonymous")}) {
    const auto parsed = ParseIdentity("--trusted-proxy", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().detail()->field, "--trusted-proxy");
  }
  EXPECT_EQ(ParseIdentity("who", "dns:Proxy.Example")->name, "proxy.example");
}

/// Tokens: ann's is "ann.right", bob's "bob.right", which has expired.
Tokens Known() {
  constexpr std::string_view kSalt = "00112233445566778899aabbccddeeff";
  std::string hash;
  for (const uint8_t byte : Sha256Of(kSalt, "right")) {
    hash += "0123456789abcdef"[byte >> 4];
    hash += "0123456789abcdef"[byte & 15];
  }
  const std::string rest = " " + std::string(kSalt) + " " + hash;
  return Tokens::Parse("ann" + rest + "\nbob" + rest + " 2000-01-01T00:00:00Z\n").value();
}

struct Case {
  std::string what;
  std::optional<CertificateNames> certificate;
  std::vector<std::string_view> authorization, header;
  std::string identity;  ///< empty: nobody knows
  std::string told;      ///< then, the value that the status names
};

/// In how many cases the token alone decides.
int Check(const std::vector<Case>& cases, const IdentityRules& rules, const BearerFiles& files) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  int decided_by_token = 0;
  for (const Case& one : cases) {
    const auto values = [](const std::vector<std::string_view>& all) {
      return PresentedValues{all.size(), all.empty() ? std::string_view() : all.front()};
    };
    const Presented presented{one.certificate, values(one.authorization), values(one.header)};
    const auto identity = Identify(presented, rules, files, now);
    EXPECT_EQ(identity ? identity->Text() : "", one.identity) << one.what;
    if (TokenAloneDecides(presented, rules, files)) {
      const auto by_token = Identify({{}, {1, presented.authorization.first}, {}}, {}, files, now);
      EXPECT_EQ(by_token ? by_token->Text() : "", one.identity) << one.what;
      ++decided_by_token;
    }
    if (identity) continue;
    EXPECT_EQ(identity.error().code(), Code::kUnauthenticated) << one.what;
    EXPECT_EQ(identity.error().reason(), "IDENTITY") << one.what;
    EXPECT_EQ(identity.error().detail()->value, one.told) << one.what;
  }
  return decided_by_token;
}

CertificateNames Dns(std::string name) {
  return {.dns = {std::move(name)}, .common_name = "unused"};
}

/// As where TLS took up a session from when it was good.
TEST(Identify, ACertificateThatIsOverNamesNobody) {
  const Tokens tokens = Known();
  const auto in = [](std::chrono::seconds left) {
    CertificateNames names = Dns("a");
    names.ends = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1) + left;
    return names;
  };
  using std::chrono::seconds;
  Check({{"good", in(seconds(1)), {}, {}, "dns:a", ""},
         {"over", in(seconds(0)), {}, {}, "", "expired"},
         {"long over", in(seconds(-1000)), {}, {}, "", "expired"},
         {"never absent", in(seconds(0)), {"Bearer ann.right"}, {}, "", "expired"}},
        {}, {&tokens, nullptr});
}

TEST(Identify, WithoutProxies) {
  const Tokens tokens = Known();
  const CertificateNames both{
      .uris = {"https://x", "spiffe://d/a"}, .dns = {"a.example"}, .common_name = "a"};
  const std::vector<Case> cases{
      {"nothing", {}, {}, {}, "anonymous", ""},
      {"the header means nothing", {}, {}, {"ann"}, "anonymous", ""},
      {"SPIFFE id first", both, {}, {}, "spiffe://d/a", ""},
      {"two SPIFFE ids", {{{"spiffe://d/a", "spiffe://d/b"}, {"a"}, "a"}}, {}, {}, "", "2 SPIFFE ids"},
      {"first DNS name", {{{"https://x"}, {"B.example", "a.example"}, "c"}}, {}, {}, "dns:b.example", ""},
      {"common name", {{{}, {}, "Ann B"}}, {}, {}, "cn:Ann B", ""},
      {"no name", {{{}, {}, ""}}, {}, {}, "", "a common name, and no other, that cannot be a name"},
      {"a bad one is not skipped", {{{}, {"a\nb"}, "ann"}}, {}, {}, "", "a DNS name that cannot be a name"},
      {"token", {}, {"Bearer ann.right"}, {}, "token:ann", ""},
      {"scheme in any case", {}, {"bEARER ann.right"}, {}, "token:ann", ""},
      {"token before certificate", Dns("a"), {"Bearer ann.right"}, {}, "token:ann", ""},
      {"wrong token, never the certificate", Dns("a"), {"Bearer ann.wrong"}, {}, "", "unknown"},
      {"right token, never a wrong certificate",
       {{{}, {}, ""}},
       {"Bearer ann.right"},
       {},
       "",
       "a common name, and no other, that cannot be a name"},
      {"unknown name", {}, {"Bearer eve.right"}, {}, "", "unknown"},
      {"no name in it", {}, {"Bearer right"}, {}, "", "unknown"},
      {"no secret in it", {}, {"Bearer ann."}, {}, "", "unknown"},
      {"empty", {}, {"Bearer "}, {}, "", "unknown"},
      {"expired", {}, {"Bearer bob.right"}, {}, "", "expired"},
      {"expired and wrong", {}, {"Bearer bob.wrong"}, {}, "", "unknown"},
      {"another scheme", {}, {"Basic YTpi"}, {}, "", "not a bearer token"},
      {"nothing at all", {}, {""}, {}, "", "not a bearer token"},
      {"twice", {}, {"Bearer ann.right", "Bearer ann.right"}, {}, "", "there 2 times"}};
  IdentityRules rules;
  EXPECT_EQ(Check(cases, rules, {.tokens = &tokens}), 10);
  rules.header = "x-user";
  EXPECT_EQ(Check(cases, rules, {.tokens = &tokens}), 0);
}

TEST(Identify, ByBothKindsOfTokens) {
  const Tokens tokens = Known();
  const SigningKey key = SigningKey::Ed(), strange = SigningKey::Ed();
  const Jwks jwks =
      Jwks::Parse(KeySet({key.Jwk("k")}), {.issuer = "https://issuer", .audience = "tilewire"}).value();
  json claims = GoodClaims("ann");
  claims["exp"] = 4'000'000'000;
  const json header{{"alg", "EdDSA"}, {"kid", "k"}};
  const std::string good = "Bearer " + key.Sign(header, claims),
                    bad = "Bearer " + strange.Sign(header, claims), both_ways = "Bearer ann.ri.ght",
                    other_scheme = "DPoP " + good.substr(7);
  const std::string unsigned_by = "not signed by its key";
  const IdentityRules rules{
      .header = "x-user", .trusted_proxies = {{IdentityKind::kJwt, "ann"}}, .anonymous = true};
  const std::vector<Case> alike{{"a JWT", {}, {good}, {"eve"}, "header:eve", ""},
                                {"before a certificate", Dns("a"), {good}, {"eve"}, "header:eve", ""},
                                {"a wrong one, never the certificate", Dns("a"), {bad}, {}, "", unsigned_by},
                                {"nor anonymous", {}, {bad}, {}, "", unsigned_by},
                                {"twice", {}, {good, good}, {}, "", "there 2 times"},
                                {"another scheme", {}, {other_scheme}, {}, "", "not a bearer token"}};
  Check(alike, rules, {.tokens = &tokens, .jwks = &jwks});
  Check(alike, rules, {.jwks = &jwks});
  Check({{"a JWT that is no proxy's", {}, {good}, {"eve"}, "jwt:ann", ""}}, {}, {.jwks = &jwks});
  Check({{"a line of the file", {}, {"Bearer ann.right"}, {}, "token:ann", ""},
         {"two dots are a JWT's", {}, {both_ways}, {}, "", "malformed"}},
        rules, {.tokens = &tokens, .jwks = &jwks});
  const std::vector<Case> apart{{"a JWT", {}, {good}, {}, "jwt:ann", ""},
                                {"a line of the file", {}, {"Bearer ann.right"}, {}, "token:ann", ""},
                                {"two dots are a JWT's", {}, {both_ways}, {}, "", "malformed"}};
  EXPECT_EQ(Check(apart, {}, {.tokens = &tokens, .jwks = &jwks}), 3);
  Check({{"no tokens of the file", {}, {"Bearer ann.right"}, {}, "", "no JWT"}}, rules, {.jwks = &jwks});
  Check({{"no JWT", {}, {good}, {}, "", "unknown"}}, rules, {.tokens = &tokens});
}

TEST(Identify, BehindProxies) {
  const Tokens tokens = Known();
  const IdentityRules rules{.header = "x-user",
                            .trusted_proxies = {{IdentityKind::kDns, "proxy"}, {IdentityKind::kToken, "ann"}},
                            .anonymous = true};
  const std::string longest(kMaxIdentityBytes, 'u'), longer(kMaxIdentityBytes + 1, 'u');
  Check({{"the proxy's word", Dns("proxy"), {}, {"ann"}, "header:ann", ""},
         {"by its token", {}, {"Bearer ann.right"}, {"eve"}, "header:eve", ""},
         {"its certificate, another's token", Dns("proxy"), {"Bearer ann.right"}, {"eve"}, "header:eve", ""},
         {"the longest", Dns("proxy"), {}, {longest}, "header:" + longest, ""},
         {"missing", Dns("proxy"), {}, {}, "", "missing"},
         {"empty", Dns("proxy"), {}, {""}, "", "empty"},
         {"twice", Dns("proxy"), {}, {"ann", "ann"}, "", "there 2 times"},
         {"too long", Dns("proxy"), {}, {longer}, "", "257 characters long"},
         {"unprintable", Dns("proxy"), {}, {"a\tb"}, "", "not printable"},
         {"a wrong token beside it", Dns("proxy"), {"Bearer ann.wrong"}, {"ann"}, "", "unknown"},
         {"not a proxy", Dns("other"), {}, {"ann"}, "dns:other", ""},
         {"another kind of that name", {{{}, {}, "proxy"}}, {}, {"ann"}, "cn:proxy", ""},
         {"nobody", {}, {}, {"ann"}, "anonymous", ""}},
        rules, {.tokens = &tokens});
}

TEST(Identify, AnonymousProxiesAndCallers) {
  const IdentityRules open{.header = "x-user", .trusted_proxies = {Identity{}}, .anonymous = false};
  Check({{"a proxy without a name", {}, {}, {"ann"}, "header:ann", ""},
         {"which must say", {}, {}, {}, "", "missing"},
         {"a caller of its own name", Dns("a"), {}, {"ann"}, "dns:a", ""}},
        open, {});
  const IdentityRules closed{.header = "", .trusted_proxies = {}, .anonymous = false};
  Check({{"nobody", {}, {}, {}, "", "missing"},
         {"no tokens here", {}, {"Bearer ann.right"}, {}, "", "missing"},
         {"somebody", Dns("a"), {"Basic YTpi"}, {}, "dns:a", ""}},
        closed, {});
}

}  // namespace
}  // namespace tilewire::rpc

// The file of keys of JWT: what it may say, and by what vectors of the standards its keys judge.
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

/// What is wrong with it; empty: nothing.
std::string SetComplaint(const std::string& text) {
  const auto parsed = Jwks::Parse(text, {.issuer = "i", .audience = "a"});
  return parsed ? "" : std::string(parsed.error().message());
}
std::string KeysComplaint(const std::vector<json>& keys) {
  return SetComplaint(KeySet(keys));
}

/// A key with another value in it; null takes it away.
json With(json jwk, const char* name, const json& value) {
  jwk[name] = value;
  if (value.is_null()) jwk.erase(name);
  return jwk;
}

struct Vector {
  json jwk;
  std::string text, signature;
};

/// RFC 7515, A.2 and A.3; RFC 8037, A.4.
std::vector<Vector> Vectors() {
  const std::string claims =
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
  return {{{{"kty", "RSA"},
            {"n",
             "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-"
             "4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-"
             "SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-"
             "KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-"
             "DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"},
            {"e", "AQAB"}},
           "eyJhbGciOiJSUzI1NiJ9." + claims,
           "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
           "O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
           "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K"
           "0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"
           "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq"
           "Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
          {{{"kty", "EC"},
            {"crv", "P-256"},
            {"x", "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"},
            {"y", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}},
           "eyJhbGciOiJFUzI1NiJ9." + claims,
           "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
          {{{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}},
           "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
           "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"}};
}

TEST(JwsKey, JudgesAsTheStandardsDo) {
  for (const auto& [jwk, text, signature] : Vectors()) {
    const auto key = JwsKey::Parse("k", jwk);
    ASSERT_TRUE(key && *key) << jwk;
    const std::string bytes = DecodeBase64Url(signature).value();
    EXPECT_TRUE((*key)->Signed(text, bytes)) << jwk;
    EXPECT_FALSE((*key)->Signed(text + "x", bytes));
    EXPECT_FALSE((*key)->Signed(text, ""));
    EXPECT_FALSE((*key)->Signed(text, bytes.substr(1)));
    EXPECT_FALSE((*key)->Signed(text, bytes + bytes));
    EXPECT_FALSE((*key)->Signed(text, std::string(bytes.size(), '\0')));
  }
}

TEST(Jwks, WhatIsWrongIsSaidWhereItIs) {
  const json rsa = SigningKey::Rsa().Jwk("r"), ec = SigningKey::Ec().Jwk("e"), ed = SigningKey::Ed().Jwk("o");
  EXPECT_EQ(KeysComplaint({rsa, ec, ed}), "");
  EXPECT_EQ(KeysComplaint(std::vector<json>{}), "") << "nobody gets in";
  EXPECT_EQ(SetComplaint("{\"keys\": [\n,]}"), "line 2 is no JSON");
  for (const char* none : {"[]", "3", "{}", R"({"keys": {}})", R"({"key": []})"})
    EXPECT_EQ(SetComplaint(none), "the file has no list of keys; allowed: {\"keys\": [...]}") << none;
  EXPECT_EQ(SetComplaint(R"({"keys": [], "keys": []})"), "the key \"keys\" is there twice in one object");
  EXPECT_EQ(SetComplaint(R"({"keys": [], "n": 1e999})"), "a number is out of range");
  EXPECT_EQ(KeysComplaint(std::vector<json>(257, rsa)), "keys are 257; allowed: at most 256");
  const std::string several = "a key has no kid; allowed: one for each of several keys";
  const std::string off_curve = Base64Url(std::string(32, '\x01'));
  const std::vector<std::pair<std::vector<json>, std::string>> all{
      {{3}, "keys[0] is no object; allowed: a key in JSON"},
      {{ec, With(rsa, "kid", "e")}, "keys[1].kid is another key's, too; allowed: one for each"},
      {{ec, With(rsa, "kid", nullptr)}, several},
      {{With(ec, "kid", "")}, "keys[0].kid is no name; allowed: a text of 1 to 256 bytes"},
      {{With(ec, "kid", 1)}, "keys[0].kid is no name; allowed: a text of 1 to 256 bytes"},
      {{With(ec, "kty", nullptr)}, "keys[0].kty is missing; allowed: RSA, EC, OKP"},
      {{With(ec, "kty", "DSA")}, "keys[0].kty is unknown; allowed: RSA, EC, OKP"},
      {{With(ec, "kty", 1)}, "keys[0].kty is no text; allowed: a text"},
      {{{{"kty", "oct"}, {"k", "c2VjcmV0"}}},
       "keys[0] is a secret that all sides share; allowed: public keys: RS256, ES256, EdDSA"},
      {{{{"kty", "oct"}, {"use", "enc"}}},
       "keys[0] is a secret that all sides share; allowed: public keys: RS256, ES256, EdDSA"},
      {{With(ec, "k", "c2VjcmV0")},
       "keys[0] is a secret that all sides share; allowed: public keys: RS256, ES256, EdDSA"},
      {{With(ec, "d", "c2VjcmV0")}, "keys[0] is a private key; allowed: public keys"},
      {{With(rsa, "alg", "PS256")}, "keys[0].alg is another algorithm; allowed: RS256 for such a key"},
      {{With(rsa, "alg", "HS256")}, "keys[0].alg is another algorithm; allowed: RS256 for such a key"},
      {{With(rsa, "alg", "none")}, "keys[0].alg is another algorithm; allowed: RS256 for such a key"},
      {{With(ec, "alg", "ES384")}, "keys[0].alg is another algorithm; allowed: ES256 for such a key"},
      {{With(ed, "alg", "ES256")}, "keys[0].alg is another algorithm; allowed: EdDSA for such a key"},
      {{With(ec, "key_ops", "verify")}, "keys[0].key_ops is no list; allowed: a list of texts"},
      {{With(rsa, "n", nullptr)}, "keys[0].n is missing; allowed: base64url without padding"},
      {{With(rsa, "n", "a=")}, "keys[0].n is no base64url; allowed: base64url without padding"},
      {{With(rsa, "n", Base64Url(std::string(256, '\xfe')))},
       "keys[0] is no public key; allowed: an RSA key"},
      {{With(rsa, "n", Base64Url(std::string(1025, '\xff')))},
       "keys[0].n is 8200 bits long; allowed: 2048 to 8192"},
      {{SigningKey::Rsa(1024).Jwk("w")}, "keys[0].n is 1024 bits long; allowed: 2048 to 8192"},
      {{With(rsa, "e", "AQ")},
       "keys[0].e is no exponent; allowed: odd numbers from 3 on, of at most 8 bytes"},
      {{With(rsa, "e", "Ag")},
       "keys[0].e is no exponent; allowed: odd numbers from 3 on, of at most 8 bytes"},
      {{With(rsa, "e", Base64Url(std::string(9, '\x01')))},
       "keys[0].e is no exponent; allowed: odd numbers from 3 on, of at most 8 bytes"},
      {{With(ec, "crv", "P-384")}, "keys[0].crv is another curve; allowed: P-256"},
      {{With(ec, "crv", nullptr)}, "keys[0].crv is missing; allowed: P-256"},
      {{With(ec, "x", "AAAA")}, "keys[0].x is 3 bytes long; allowed: 32"},
      {{With(ec, "y", off_curve)}, "keys[0] is no public key; allowed: a point of P-256"},
      {{With(ed, "crv", "X25519")}, "keys[0].crv is another curve; allowed: Ed25519"},
      {{With(ed, "crv", "Ed448")}, "keys[0].crv is another curve; allowed: Ed25519"},
      {{With(ed, "x", "AAAA")}, "keys[0].x is 3 bytes long; allowed: 32"}};
  for (const auto& [keys, complaint] : all) EXPECT_EQ(KeysComplaint(keys), complaint);
}

TEST(Jwks, KeysForOtherThingsAreLeftOut) {
  const SigningKey key = SigningKey::Ec(), other = SigningKey::Rsa();
  const json encrypts = With(With(other.Jwk("r"), "use", "enc"), "alg", "RSA-OAEP"),
             seals = With(With(other.Jwk("s"), "use", nullptr), "key_ops", {"encrypt"});
  const auto parsed = Jwks::Parse(KeySet({encrypts, key.Jwk("e"), seals}), {.issuer = "i", .audience = "a"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->size(), 1u);
  EXPECT_EQ(KeysComplaint({With(key.Jwk("e"), "key_ops", {"verify"})}), "");
}

}  // namespace
}  // namespace tilewire::rpc

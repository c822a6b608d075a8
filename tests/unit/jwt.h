// Keys that a test makes for itself as it runs, in JSON, and tokens that they sign.
#pragma once

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/base64url_text.h"

namespace tilewire::testing {

using nlohmann::json;

/// A key that signs.
class SigningKey {
 public:
  static SigningKey Rsa(unsigned bits = 2048) { return {"RS256", EVP_RSA_gen(bits)}; }
  static SigningKey Ec(const char* curve = "P-256") { return {"ES256", EVP_EC_gen(curve)}; }
  static SigningKey Ed() { return {"EdDSA", EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")}; }

  const std::string& algorithm() const { return algorithm_; }

  /// What goes into the set.
  json Jwk(const std::string& kid) const {
    json jwk{{"kid", kid}, {"use", "sig"}, {"alg", algorithm_}};
    if (algorithm_ == "RS256") {
      jwk.update(
          {{"kty", "RSA"}, {"n", Number(OSSL_PKEY_PARAM_RSA_N)}, {"e", Number(OSSL_PKEY_PARAM_RSA_E)}});
    } else if (algorithm_ == "ES256") {
      jwk.update({{"kty", "EC"},
                  {"crv", "P-256"},
                  {"x", Number(OSSL_PKEY_PARAM_EC_PUB_X, 32)},
                  {"y", Number(OSSL_PKEY_PARAM_EC_PUB_Y, 32)}});
    } else {
      std::string x(32, '\0');
      size_t bytes = x.size();
      EXPECT_EQ(EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(x.data()), &bytes),
                1);
      jwk.update({{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", Base64Url(x)}});
    }
    return jwk;
  }

  /// The third part of a token, of the first two.
  std::string SignatureOf(std::string_view text) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    EXPECT_EQ(EVP_DigestSignInit_ex(context.get(), nullptr, algorithm_ == "EdDSA" ? nullptr : "SHA256",
                                    nullptr, nullptr, key_.get(), nullptr),
              1);
    const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
    size_t bytes = 0;
    EXPECT_EQ(EVP_DigestSign(context.get(), nullptr, &bytes, data, text.size()), 1);
    std::string signature(bytes, '\0');
    EXPECT_EQ(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &bytes, data,
                             text.size()),
              1);
    signature.resize(bytes);
    return Base64Url(algorithm_ == "ES256" ? TwoNumbers(signature) : signature);
  }
  /// A token of these, whatever they say.
  std::string Sign(const json& header, const json& claims) const {
    const std::string text = Base64Url(header.dump()) + "." + Base64Url(claims.dump());
    return text + "." + SignatureOf(text);
  }

 private:
  SigningKey(std::string algorithm, EVP_PKEY* key)
      : algorithm_(std::move(algorithm)), key_(key, &EVP_PKEY_free) {
    EXPECT_NE(key, nullptr);
  }
  std::string Number(const char* name, int bytes = 0) const {
    BIGNUM* number = nullptr;
    EXPECT_EQ(EVP_PKEY_get_bn_param(key_.get(), name, &number), 1) << name;
    const std::unique_ptr<BIGNUM, decltype(&BN_free)> owned(number, &BN_free);
    std::string text(static_cast<size_t>(bytes > 0 ? bytes : BN_num_bytes(number)), '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(text.data()), static_cast<int>(text.size()));
    return Base64Url(text);
  }
  /// As tokens have it, from DER.
  static std::string TwoNumbers(const std::string& der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> numbers(
        d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), &ECDSA_SIG_free);
    std::string text(64, '\0');
    auto* const bytes = reinterpret_cast<unsigned char*>(text.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(numbers.get()), bytes, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(numbers.get()), bytes + 32, 32);
    return text;
  }

  std::string algorithm_;
  std::shared_ptr<EVP_PKEY> key_;
};

inline std::string KeySet(const std::vector<json>& keys) {
  return json{{"keys", keys}}.dump();
}

inline int64_t SecondsFromNow(int64_t seconds) {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
             .count() +
         seconds;
}

/// What a good token says for an hour, of issuer "https://issuer" for audience "tilewire".
inline json GoodClaims(const std::string& sub) {
  return {{"iss", "https://issuer"}, {"aud", "tilewire"}, {"sub", sub}, {"exp", SecondsFromNow(3600)}};
}

}  // namespace tilewire::testing

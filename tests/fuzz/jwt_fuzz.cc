// Tokens that another authority signs, and the file of its keys: any bytes are a set of keys or a complaint;
// a token that nobody signed is refused; and what a signed one says is taken only as it says it.
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "server/rpc/identity/base64url.h"
#include "server/rpc/identity/identity.h"
#include "server/rpc/identity/jwks.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/base64url_text.h"

namespace {

using namespace tilewire;  // NOLINT(google-build-using-namespace)
using nlohmann::json;
using testing::Base64Url;

constexpr double kNow = 1'800'000'000;
const rpc::JwtRules kRules{.issuer = "i", .audience = "a", .skew = std::chrono::seconds(60)};

/// Signs for the whole run; nobody's secret.
class Signer {
 public:
  Signer() {
    const std::array<unsigned char, 32> secret{1, 2, 3};
    key_.reset(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.data(), secret.size()));
  }
  json Jwk() const {
    std::string x(32, '\0');
    size_t bytes = x.size();
    FUZZ_CHECK(EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(x.data()), &bytes) ==
               1);
    return {{"kty", "OKP"}, {"crv", "Ed25519"}, {"kid", "k"}, {"x", Base64Url(x)}};
  }
  std::string SignatureOf(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    FUZZ_CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
    std::string signature(64, '\0');
    size_t bytes = signature.size();
    FUZZ_CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &bytes,
                              reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1);
    return Base64Url(signature);
  }

 private:
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_{nullptr, &EVP_PKEY_free};
};

const Signer& TheSigner() {
  static const Signer signer;
  return signer;
}

rpc::WallTime Now() {
  return rpc::WallTime(
      std::chrono::duration_cast<rpc::WallTime::duration>(std::chrono::duration<double>(kNow)));
}

void CheckUnauthenticated(const Status& status) {
  FUZZ_CHECK(status.code() == Code::kUnauthenticated && status.reason() == "IDENTITY");
}

void CheckSet(const std::string& text) {
  const auto set = rpc::Jwks::Parse(text, kRules);
  if (!set) return fuzz::CheckRefusal(set.error());
  FUZZ_CHECK(set->size() <= 256);
  const auto name = set->Check("e30.e30.e30", Now());
  FUZZ_CHECK(!name);
  CheckUnauthenticated(name.error());
}

void CheckUnsigned(const std::string& token) {
  const auto bytes = rpc::DecodeBase64Url(token);
  FUZZ_CHECK(!bytes || Base64Url(*bytes) == token);
  static const rpc::Jwks set = rpc::Jwks::Parse(json{{"keys", {TheSigner().Jwk()}}}.dump(), kRules).value();
  const auto name = set.Check(token, Now());
  FUZZ_CHECK(!name);
  CheckUnauthenticated(name.error());
}

void CheckSigned(const std::string& header, const std::string& claims) {
  static const rpc::Jwks set = rpc::Jwks::Parse(json{{"keys", {TheSigner().Jwk()}}}.dump(), kRules).value();
  const std::string text = Base64Url(header) + "." + Base64Url(claims);
  const auto name = set.Check(text + "." + TheSigner().SignatureOf(text), Now());
  if (!name) return CheckUnauthenticated(name.error());
  // By another reading of the same, which throws where a claim is missing or of another type.
  const json head = json::parse(header), body = json::parse(claims);
  const auto algorithm = head.at("alg").get<std::string>();
  FUZZ_CHECK(algorithm == "EdDSA" || algorithm == "Ed25519");
  FUZZ_CHECK(head.value("kid", "k") == "k" && !head.contains("crit"));
  FUZZ_CHECK(body.at("iss") == "i" && body.at("sub") == *name && rpc::IsIdentityName(*name));
  FUZZ_CHECK(body.at("aud") == "a" || body.at("aud").is_array());
  FUZZ_CHECK(body.at("exp").get<double>() + 60 > kNow && body.value("nbf", kNow) - 60 <= kNow);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const int what = input.Below(3);
  if (what < 2) {
    const std::string text(input.rest().begin(), input.rest().end());
    what == 0 ? CheckSet(text) : CheckUnsigned(text);
    return 0;
  }
  const size_t most = input.Byte();  // before what is left is asked for
  const auto rest = input.rest();
  const size_t header = std::min(most, rest.size());
  const auto split = rest.begin() + static_cast<std::ptrdiff_t>(header);
  CheckSigned(std::string(rest.begin(), split), std::string(split, rest.end()));
  return 0;
}

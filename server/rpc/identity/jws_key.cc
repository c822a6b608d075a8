#include "server/rpc/identity/jws_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/rpc/identity/base64url.h"

namespace tilewire::rpc {
namespace {

using nlohmann::json;
using Key = std::shared_ptr<EVP_PKEY>;

constexpr std::string_view kRs256 = "RS256", kEs256 = "ES256", kEdDsa = "EdDSA";
constexpr std::string_view kEd25519 = "Ed25519";  // what RFC 9864 calls EdDSA with that curve
constexpr int kLeastRsaBits = 2048, kMostRsaBits = 8192;
constexpr size_t kMostExponentBytes = 8, kCoordinateBytes = 32, kEs256Bytes = 64;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* what) const {
    Free(what);
  }
};
template <typename T, auto Free>
using Open = std::unique_ptr<T, Freed<Free>>;

/// What goes wrong here stays here: OpenSSL keeps errors by thread, and those of a thread's next TLS
/// connection must be its own.
class OwnErrors {
 public:
  OwnErrors() { ERR_set_mark(); }
  ~OwnErrors() { ERR_pop_to_mark(); }
  OwnErrors(const OwnErrors&) = delete;
};

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

tl::unexpected<Status> Refuse(const std::string& where, std::string_view is, std::string_view allowed) {
  return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                     where + " is " + std::string(is) + "; allowed: " + std::string(allowed)));
}

/// A text of the key; empty where it has none.
Result<std::string> TextOf(const std::string& where, const json& jwk, const char* name) {
  const auto found = jwk.find(name);
  if (found == jwk.end()) return std::string();
  if (!found->is_string()) return Refuse(where + "." + name, "no text", "a text");
  return found->get<std::string>();
}

/// Bytes that the key must have.
Result<std::string> BytesOf(const std::string& where, const json& jwk, const char* name) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::string text, TextOf(where, jwk, name));
  auto bytes = DecodeBase64Url(text);
  if (!bytes || bytes->empty())
    return Refuse(where + "." + name, text.empty() ? "missing" : "no base64url", "base64url without padding");
  return *std::move(bytes);
}

/// Of public parameters, where they are a good key.
Key Made(const char* type, OSSL_PARAM_BLD* parameters) {
  const Open<OSSL_PARAM, OSSL_PARAM_free> built(OSSL_PARAM_BLD_to_param(parameters));
  const Open<EVP_PKEY_CTX, EVP_PKEY_CTX_free> making(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* made = nullptr;
  if (!built || !making || EVP_PKEY_fromdata_init(making.get()) != 1 ||
      EVP_PKEY_fromdata(making.get(), &made, EVP_PKEY_PUBLIC_KEY, built.get()) != 1)
    return nullptr;
  Key key(made, &EVP_PKEY_free);
  const Open<EVP_PKEY_CTX, EVP_PKEY_CTX_free> check(EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  return check && EVP_PKEY_public_check(check.get()) == 1 ? key : nullptr;
}

Result<Key> RsaKey(const std::string& where, const json& jwk) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::string modulus, BytesOf(where, jwk, "n"));
  TILEWIRE_ASSIGN_OR_RETURN(const std::string exponent, BytesOf(where, jwk, "e"));
  const Open<BIGNUM, BN_free> n(BN_bin2bn(Bytes(modulus), static_cast<int>(modulus.size()), nullptr)),
      e(BN_bin2bn(Bytes(exponent), static_cast<int>(exponent.size()), nullptr));
  if (const int bits = n ? BN_num_bits(n.get()) : 0; bits < kLeastRsaBits || bits > kMostRsaBits)
    return Refuse(where + ".n", std::to_string(bits) + " bits long",
                  std::to_string(kLeastRsaBits) + " to " + std::to_string(kMostRsaBits));
  if (!e || exponent.size() > kMostExponentBytes || BN_is_odd(e.get()) == 0 || BN_is_one(e.get()) != 0)
    return Refuse(where + ".e", "no exponent", "odd numbers from 3 on, of at most 8 bytes");
  const Open<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> parameters(OSSL_PARAM_BLD_new());
  Key key;
  if (parameters && OSSL_PARAM_BLD_push_BN(parameters.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) == 1 &&
      OSSL_PARAM_BLD_push_BN(parameters.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) == 1)
    key = Made("RSA", parameters.get());
  if (!key) return Refuse(where, "no public key", "an RSA key");
  return key;
}

/// Which of the curves of its type a key must say.
Status OnCurve(const std::string& where, const json& jwk, std::string_view curve) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::string said, TextOf(where, jwk, "crv"));
  if (said == curve) return {};
  return Refuse(where + ".crv", said.empty() ? "missing" : "another curve", curve).value();
}

Result<std::string> CoordinateOf(const std::string& where, const json& jwk, const char* name) {
  TILEWIRE_ASSIGN_OR_RETURN(std::string bytes, BytesOf(where, jwk, name));
  if (bytes.size() == kCoordinateBytes) return bytes;
  return Refuse(where + "." + name, std::to_string(bytes.size()) + " bytes long",
                std::to_string(kCoordinateBytes));
}

Result<Key> EcKey(const std::string& where, const json& jwk) {
  TILEWIRE_RETURN_IF_ERROR(OnCurve(where, jwk, "P-256"));
  TILEWIRE_ASSIGN_OR_RETURN(const std::string x, CoordinateOf(where, jwk, "x"));
  TILEWIRE_ASSIGN_OR_RETURN(const std::string y, CoordinateOf(where, jwk, "y"));
  const std::string point = "\x04" + x + y;  // uncompressed
  const Open<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> parameters(OSSL_PARAM_BLD_new());
  Key key;
  if (parameters &&
      OSSL_PARAM_BLD_push_utf8_string(parameters.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
      OSSL_PARAM_BLD_push_octet_string(parameters.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) == 1)
    key = Made("EC", parameters.get());
  if (!key) return Refuse(where, "no public key", "a point of P-256");
  return key;
}

Result<Key> EdwardsKey(const std::string& where, const json& jwk) {
  TILEWIRE_RETURN_IF_ERROR(OnCurve(where, jwk, kEd25519));
  TILEWIRE_ASSIGN_OR_RETURN(const std::string x, CoordinateOf(where, jwk, "x"));
  Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(x), x.size()), &EVP_PKEY_free);
  if (!key) return Refuse(where, "no public key", "an Ed25519 key");
  return key;
}

/// Whether the key says that it is for other things than signatures.
Result<bool> ForOthers(const std::string& where, const json& jwk) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::string use, TextOf(where, jwk, "use"));
  if (!use.empty() && use != "sig") return true;
  const auto found = jwk.find("key_ops");
  if (found == jwk.end()) return false;
  if (!found->is_array()) return Refuse(where + ".key_ops", "no list", "a list of texts");
  return std::find(found->begin(), found->end(), json("verify")) == found->end();
}

/// As DER has it: two numbers, each as long as it need be.
std::vector<unsigned char> DerOf(std::string_view signature) {
  constexpr int kHalf = static_cast<int>(kEs256Bytes) / 2;
  const Open<ECDSA_SIG, ECDSA_SIG_free> numbers(ECDSA_SIG_new());
  Open<BIGNUM, BN_free> r(BN_bin2bn(Bytes(signature), kHalf, nullptr)),
      s(BN_bin2bn(Bytes(signature.substr(kHalf)), kHalf, nullptr));
  if (!numbers || !r || !s || ECDSA_SIG_set0(numbers.get(), r.get(), s.get()) != 1) return {};
  (void)r.release();
  (void)s.release();
  unsigned char* der = nullptr;
  const int bytes = i2d_ECDSA_SIG(numbers.get(), &der);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(
      der, [](unsigned char* text) { OPENSSL_free(text); });
  return bytes <= 0 ? std::vector<unsigned char>() : std::vector<unsigned char>(der, der + bytes);
}

}  // namespace

Result<std::optional<JwsKey>> JwsKey::Parse(const std::string& where, const json& jwk) {
  const OwnErrors own_errors;
  if (!jwk.is_object()) return Refuse(where, "no object", "a key in JSON");
  TILEWIRE_ASSIGN_OR_RETURN(const std::string type, TextOf(where, jwk, "kty"));
  if (type == "oct" || jwk.contains("k"))
    return Refuse(where, "a secret that all sides share", "public keys: RS256, ES256, EdDSA");
  if (jwk.contains("d")) return Refuse(where, "a private key", "public keys");
  TILEWIRE_ASSIGN_OR_RETURN(const bool others, ForOthers(where, jwk));
  if (others) return std::nullopt;
  std::string_view algorithm;
  Result<Key> key = Key();
  if (type == "RSA") {
    algorithm = kRs256;
    key = RsaKey(where, jwk);
  } else if (type == "EC") {
    algorithm = kEs256;
    key = EcKey(where, jwk);
  } else if (type == "OKP") {
    algorithm = kEdDsa;
    key = EdwardsKey(where, jwk);
  } else {
    return Refuse(where + ".kty", type.empty() ? "missing" : "unknown", "RSA, EC, OKP");
  }
  if (!key) return Fail(key.error());
  JwsKey parsed(algorithm, *std::move(key));
  TILEWIRE_ASSIGN_OR_RETURN(const std::string said, TextOf(where, jwk, "alg"));
  if (!said.empty() && !parsed.Makes(said))
    return Refuse(where + ".alg", "another algorithm", std::string(algorithm) + " for such a key");
  return parsed;
}

bool JwsKey::Makes(std::string_view algorithm) const {
  return algorithm == algorithm_ || (algorithm_ == kEdDsa && algorithm == kEd25519);
}

bool JwsKey::Signed(std::string_view text, std::string_view signature) const {
  const OwnErrors own_errors;
  std::vector<unsigned char> der;
  if (algorithm_ == kEs256) {
    if (signature.size() != kEs256Bytes) return false;
    der = DerOf(signature);
    signature = std::string_view(reinterpret_cast<const char*>(der.data()), der.size());
  }
  const Open<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
  const char* const digest = algorithm_ == kEdDsa ? nullptr : "SHA256";  // Ed25519 has its own
  return context &&
         EVP_DigestVerifyInit_ex(context.get(), nullptr, digest, nullptr, nullptr, key_.get(), nullptr) ==
             1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text), text.size()) == 1;
}

}  // namespace tilewire::rpc

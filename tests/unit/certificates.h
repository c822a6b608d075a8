// Authorities and certificates that a test makes for itself, as it runs.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace tilewire::testing {

using OpenKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using OpenCertificate = std::unique_ptr<X509, decltype(&X509_free)>;

/// In PEM.
struct CertificateAndKey {
  std::string certificate, key;
};

/// Whom a certificate is for. `names` as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1,URI:spiffe://a/b".
struct Subject {
  std::string common_name, names;
  bool expired = false;
  long seconds = 0;      ///< that it is good from now on; 0: a day
  bool weak = false;     ///< its key, for any TLS
  bool endless = false;  ///< as RFC 5280, 4.1.2.5 says that there is no end
};

inline std::string TextOf(BIO* bio) {
  const char* text = nullptr;
  const long bytes = BIO_get_mem_data(bio, &text);
  return std::string(text, static_cast<size_t>(bytes));
}

/// Somebody who signs certificates.
class Authority {
 public:
  explicit Authority(const std::string& name)
      : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), certificate_(X509_new(), &X509_free) {
    Fill(certificate_.get(), key_.get(), {.common_name = name});
    Extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    Extend(certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    EXPECT_GT(X509_sign(certificate_.get(), key_.get(), EVP_sha256()), 0);
  }

  std::string pem() const { return PemOf(certificate_.get()); }

  CertificateAndKey Issue(const Subject& subject) const {
    const OpenKey key(subject.weak ? EVP_RSA_gen(512) : EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const OpenCertificate certificate(X509_new(), &X509_free);
    Fill(certificate.get(), key.get(), subject);
    if (!subject.names.empty()) Extend(certificate.get(), NID_subject_alt_name, subject.names.c_str());
    EXPECT_GT(X509_sign(certificate.get(), key_.get(), EVP_sha256()), 0);
    return {PemOf(certificate.get()), PemOf(key.get())};
  }

 private:
  static std::string PemOf(X509* certificate) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
    EXPECT_EQ(PEM_write_bio_X509(bio.get(), certificate), 1);
    return TextOf(bio.get());
  }
  static std::string PemOf(EVP_PKEY* key) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
    EXPECT_EQ(PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    return TextOf(bio.get());
  }
  static void Extend(X509* certificate, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, &context, nid, value), &X509_EXTENSION_free);
    ASSERT_TRUE(extension) << value;
    EXPECT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
  }
  /// All but extensions and the signature; good for a day, or since a day not any more.
  void Fill(X509* certificate, EVP_PKEY* key, const Subject& subject) const {
    constexpr long kDay = 24 * 60 * 60;
    static long serial = 0;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * kDay);
    X509_gmtime_adj(X509_getm_notAfter(certificate), subject.expired       ? -kDay
                                                     : subject.seconds > 0 ? subject.seconds
                                                                           : kDay);
    if (subject.endless)
      EXPECT_EQ(ASN1_TIME_set_string(X509_getm_notAfter(certificate), "99991231235959Z"), 1);
    X509_set_pubkey(certificate, key);
    X509_NAME* const name = X509_get_subject_name(certificate);
    if (!subject.common_name.empty())
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(subject.common_name.c_str()), -1, -1,
                                 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate_.get()));
  }

  const OpenKey key_;
  const OpenCertificate certificate_;
};

/// Files in a folder of the test's own.
class Files {
 public:
  Files() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilewire-files-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  Files(const Files&) = delete;

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  /// In place, as editors and `cp` do. The path.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary | std::ios::trunc) << text;
    return Path(name);
  }
  /// All at once, as mounts of secrets do.
  std::string Replace(const std::string& name, const std::string& text) const {
    std::filesystem::rename(Write(name + ".new", text), folder_ / name);
    return Path(name);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace tilewire::testing

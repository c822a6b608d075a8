#include "server/rpc/identity/tls_files.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>

namespace tilewire::rpc {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

constexpr size_t kMostBytes = 4 << 20;

tl::unexpected<Status> BadFile(const std::string& flag, const std::string& path, const std::string& why) {
  return Fail(Status({.code = Code::kInvalidArgument,
                      .reason = "BAD_VALUE",
                      .message = flag + " is " + path + ", " + why,
                      .field = flag,
                      .value = path}));
}

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
}

/// Or OpenSSL would ask on the terminal.
int NoPassphrase(char*, int, int, void*) {
  return -1;
}

Certificate NextCertificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, &NoPassphrase, nullptr), &X509_free);
}

/// The first certificate; all others must be readable too.
Result<Certificate> FirstCertificate(const std::string& flag, const std::string& path,
                                     const std::string& pem) {
  const Bio bio = BioOf(pem);
  Certificate first = NextCertificate(bio.get());
  if (!first) return BadFile(flag, path, "which has no certificate in PEM");
  while (NextCertificate(bio.get())) {
  }
  // The end of the text is told as "no start line", and only that is the end.
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended) return BadFile(flag, path, "which has a certificate that cannot be read");
  return first;
}

std::optional<time_t> TimeOf(const ASN1_TIME* time) {
  tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return std::nullopt;
  return timegm(&fields);
}

/// What this machine's TLS has against a chain and its key, keys that are too short or hashes that are too
/// weak for instance; empty: nothing. gRPC would find it at the next handshake, and go on with the old ones.
std::string WhyTlsRefuses(const std::string& chain, EVP_PKEY* key) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  const Bio bio = BioOf(chain);
  const Certificate first = NextCertificate(bio.get());
  bool takes = context && SSL_CTX_use_certificate(context.get(), first.get()) == 1 &&
               SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  while (takes) {
    const Certificate next = NextCertificate(bio.get());
    if (!next) break;
    takes = SSL_CTX_add1_chain_cert(context.get(), next.get()) == 1;
  }
  const char* const reason = takes ? nullptr : ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  if (takes) return {};
  return reason == nullptr ? "for no reason that it gives" : reason;
}

std::string TimeText(time_t time) {
  tm fields{};
  std::array<char, sizeof "9999-12-31T23:59:59Z" + 8> text{};
  std::strftime(text.data(), text.size(), "%FT%TZ", gmtime_r(&time, &fields));
  return text.data();
}

}  // namespace

std::string DoubtOfTls(const TlsPaths& paths, const TlsPems& pems,
                       std::chrono::system_clock::time_point now) {
  const auto certificate = FirstCertificate("--tls-cert", paths.certificate, pems.certificate);
  if (!certificate) return {};
  const auto first = TimeOf(X509_get0_notBefore(certificate->get())),
             last = TimeOf(X509_get0_notAfter(certificate->get()));
  const time_t at = std::chrono::system_clock::to_time_t(now);
  const std::string what = "--tls-cert is " + paths.certificate + ", whose certificate ";
  if (last && at > *last) return what + "was good until " + TimeText(*last);
  if (first && at < *first) return what + "is good from " + TimeText(*first) + " on";
  return {};
}

std::optional<std::chrono::system_clock::time_point> EndOfCertificate(const std::string& pem) {
  const auto certificate = FirstCertificate("", "", pem);
  if (!certificate) return std::nullopt;
  const auto last = TimeOf(X509_get0_notAfter(certificate->get()));
  if (!last) return std::nullopt;
  // Those without an end say the year 9999 (RFC 5280, 4.1.2.5), which this clock does not reach.
  using Time = std::chrono::system_clock::time_point;
  constexpr auto kMost = std::chrono::floor<std::chrono::seconds>(Time::max().time_since_epoch()).count();
  return *last >= kMost ? Time::max() : std::chrono::system_clock::from_time_t(*last);
}

Result<std::string> ReadWholeFile(const std::string& flag, const std::string& path) {
  errno = 0;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fd < 0 ? nullptr : fdopen(fd, "r"), &std::fclose);
  struct stat facts {};
  if (file && fstat(fd, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
    return BadFile(flag, path, "which is no file");
  std::string text;
  if (file) {
    std::array<char, 4096> buffer{};
    while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
      text.append(buffer.data(), count);
      if (text.size() > kMostBytes) return BadFile(flag, path, "which is longer than 4 MiB");
    }
    if (std::ferror(file.get()) == 0) return text;
  }
  return BadFile(flag, path, std::string("which cannot be read: ") + std::strerror(errno));
}

Result<TlsPems> ReadTls(const TlsPaths& paths) {
  TlsPems pems;
  TILEWIRE_ASSIGN_OR_RETURN(pems.certificate, ReadWholeFile("--tls-cert", paths.certificate));
  TILEWIRE_ASSIGN_OR_RETURN(pems.key, ReadWholeFile("--tls-key", paths.key));
  if (!paths.client_ca.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(pems.client_ca, ReadWholeFile("--tls-client-ca", paths.client_ca));
  }
  return pems;
}

Status CheckTls(const TlsPaths& paths, const TlsPems& pems) {
  ERR_clear_error();
  TILEWIRE_ASSIGN_OR_RETURN(const Certificate certificate,
                            FirstCertificate("--tls-cert", paths.certificate, pems.certificate));
  const Key key(PEM_read_bio_PrivateKey(BioOf(pems.key).get(), nullptr, &NoPassphrase, nullptr),
                &EVP_PKEY_free);
  const bool matches = key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!key)
    return BadFile("--tls-key", paths.key, "which has no private key in PEM without a passphrase").value();
  if (!matches)
    return BadFile("--tls-key", paths.key,
                   "which is not the key of the first certificate in --tls-cert, " + paths.certificate)
        .value();
  if (const std::string why = WhyTlsRefuses(pems.certificate, key.get()); !why.empty())
    return BadFile("--tls-cert", paths.certificate, "which TLS does not take: " + why).value();
  if (!paths.client_ca.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(const Certificate any,
                              FirstCertificate("--tls-client-ca", paths.client_ca, pems.client_ca));
  }
  return {};
}

}  // namespace tilewire::rpc

#include "client/cpp/tls_explain.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <ctime>
#include <memory>

#include "client/cpp/no_broken_pipes.h"

namespace tilewire::client {
namespace {

constexpr int kSeconds = 3;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Session = std::unique_ptr<SSL, decltype(&SSL_free)>;

std::string LastError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : reason;
}

void Trust(SSL_CTX* context, const std::string& authorities) {
  if (authorities.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    return;
  }
  const Bio bio(BIO_new_mem_buf(authorities.data(), static_cast<int>(authorities.size())), &BIO_free_all);
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one);
    X509_free(one);
  }
}

/// False where the two do not belong together.
bool Show(SSL_CTX* context, const client::TlsOptions& tls) {
  if (tls.certificate.empty()) return true;
  const Bio certificates(BIO_new_mem_buf(tls.certificate.data(), static_cast<int>(tls.certificate.size())),
                         &BIO_free_all);
  const Bio keys(BIO_new_mem_buf(tls.key.data(), static_cast<int>(tls.key.size())), &BIO_free_all);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr), &X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(keys.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  return certificate && key && SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
         SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

bool IsNumeric(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

void Expect(SSL* session, const std::string& host) {
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(session);
  if (IsNumeric(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
    SSL_set_tlsext_host_name(session, host.c_str());
  }
}

/// Tries once, as BIO_do_connect_retry does not: where nobody listens there is nothing to explain, and
/// nothing to wait for.
bool Connects(BIO* connection) {
  const std::time_t until = std::time(nullptr) + kSeconds;
  BIO_set_nbio(connection, 1);
  while (BIO_do_connect(connection) != 1) {
    int fd = -1;
    const bool waits = BIO_should_retry(connection) != 0 && BIO_get_fd(connection, &fd) >= 0;
    if (!waits || BIO_socket_wait(fd, 0, until) != 1) return false;
  }
  return true;
}

/// What came of the handshake, and of what the server says to it.
std::string Outcome(SSL* session, bool verified) {
  if (SSL_connect(session) != 1) {
    if (!verified) return "";
    const long why = SSL_get_verify_result(session);
    if (why == X509_V_ERR_HOSTNAME_MISMATCH || why == X509_V_ERR_IP_ADDRESS_MISMATCH)
      return "the server's certificate is for another name";
    if (why == X509_V_ERR_CERT_HAS_EXPIRED) return "the server's certificate has expired";
    if (why != X509_V_OK)
      return std::string("the server's certificate is not trusted by --tls-ca: ") +
             X509_verify_cert_error_string(why);
    const std::string error = LastError();
    if (error == "wrong version number") return "the server does not speak TLS";
    return error.empty() ? "" : "TLS fails: " + error;
  }
  if (!verified) return "the server speaks TLS: --tls-ca says whom to trust";
  // TLS 1.3 tells what the server thinks of the client only now; good servers of HTTP/2 speak first.
  char byte = 0;
  if (SSL_peek(session, &byte, 1) == 1) return "";
  const std::string error = LastError();
  return error.empty() ? "" : "the server refuses the client's certificate, or that there is none: " + error;
}

}  // namespace

std::string ExplainTls(const std::string& address, const ConnectOptions& options) {
  if (address.starts_with("unix:")) return "";
  const NoBrokenPipes no_broken_pipes;  // OpenSSL writes to sockets without MSG_NOSIGNAL
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ERR_clear_error();
  const Bio connection(BIO_new_connect(address.c_str()), &BIO_free_all);
  if (!connection || !Connects(connection.get())) return "";
  int fd = -1;
  BIO_get_fd(connection.get(), &fd);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);  // which connecting with a limit of time has left
  const timeval patience{.tv_sec = kSeconds, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!context) return "";
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (options.tls) {
    Trust(context.get(), options.tls->ca);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (!Show(context.get(), *options.tls)) return "--tls-key is not the key of --tls-cert";
  }
  const Session session(SSL_new(context.get()), &SSL_free);
  if (!session) return "";
  constexpr unsigned char kProtocols[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), kProtocols, sizeof kProtocols);
  if (options.tls) Expect(session.get(), host);
  SSL_set_fd(session.get(), fd);
  return Outcome(session.get(), options.tls.has_value());
}

}  // namespace tilewire::client

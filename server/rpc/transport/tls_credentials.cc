#include "server/rpc/transport/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

#include "server/base/mutex.h"

namespace tilewire::rpc {
namespace {

grpc_ssl_client_certificate_request_type RequestType(const CredentialFiles& files, bool required) {
  if (files.tls()->client_ca.empty()) return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  return required ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                  : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
}

/// The C core asks for the configuration at each handshake; its C++ wrapper does not offer that.
class ReloadedTls final : public grpc::ServerCredentials {
 public:
  ReloadedTls(const CredentialFiles* files, bool required)
      : files_(files),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(RequestType(*files, required),
                                                                            &Fetch, this))) {}
  ~ReloadedTls() override { grpc_server_credentials_release(credentials_); }
  ReloadedTls(const ReloadedTls&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    // Who calls is decided by calls/metadata.h, for all kinds of credentials.
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config) {
    auto* const tls = static_cast<ReloadedTls*>(self);
    auto pems = tls->files_->tls();
    const MutexLock lock(tls->mutex_);
    if (pems == tls->handed_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{pems->key.c_str(), pems->certificate.c_str()};
    // gRPC 1.51 ends the process where a fetched configuration has no authorities. Without any of the
    // operator's no client is asked for a certificate, so that it does not matter whom these would vouch for.
    const char* const roots = pems->client_ca.empty() ? pems->certificate.c_str() : pems->client_ca.c_str();
    *config = grpc_ssl_server_certificate_config_create(roots, &pair, 1);
    tls->handed_ = std::move(pems);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const CredentialFiles* const files_;
  Mutex mutex_;
  std::shared_ptr<const TlsPems> handed_ TILEWIRE_GUARDED_BY(mutex_);  ///< what gRPC has
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(const CredentialFiles* files, bool required) {
  return std::make_shared<ReloadedTls>(files, required);
}

}  // namespace tilewire::rpc

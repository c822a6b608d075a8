// Servers and clients that speak TLS, with certificates that the test makes.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/security/credentials.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "client/cpp/channels.h"
#include "server/rpc/identity/tokens.h"
#include "tests/integration/helpers.h"
#include "tests/unit/certificates.h"

namespace tilewire::testing {

/// gRPC ends its threads by itself, up to 0.1 s after the last channel. One that spoke TLS and ends between
/// OpenSSL's clean-up and the process's end leaves its random number generators to nobody, which
/// LeakSanitizer reports; so they are kept until the end. What our client does once a process, so that no
/// connection fails for an errno of Abseil's mutexes, is done before the first.
class KeepGrpc : public ::testing::Environment {
 public:
  void SetUp() override { client::MakeChannel("127.0.0.1:1", {}); }
  void TearDown() override { grpc_init(); }
};
inline ::testing::Environment* const kKeepGrpc = ::testing::AddGlobalTestEnvironment(new KeepGrpc);

/// What a client shows: a certificate, and metadata of its calls.
struct Shown {
  CertificateAndKey certificate;  ///< empty: none
  std::multimap<std::string, std::string> metadata;
};

inline std::shared_ptr<grpc::Channel> ConnectByTls(const std::string& address, const std::string& authority,
                                                   const CertificateAndKey& own = {}) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  const grpc::SslCredentialsOptions options{
      .pem_root_certs = authority, .pem_private_key = own.key, .pem_cert_chain = own.certificate};
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
}

/// Whether a connection comes about, in TLS and HTTP/2.
inline bool Connected(const std::shared_ptr<grpc::Channel>& channel) {
  return channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

inline grpc::Status Describe(const std::shared_ptr<grpc::Channel>& channel, const Shown& shown = {}) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  for (const auto& [key, value] : shown.metadata) context.AddMetadata(key, value);
  v1::DescribeResponse response;
  return v1::Device::NewStub(channel)->Describe(&context, {}, &response);
}

/// A line of the file of tokens; the token is NAME.SECRET.
inline std::string TokenLine(const std::string& name, const std::string& secret,
                             const std::string& expires = "") {
  const std::string salt = "00112233445566778899aabbccddeeff";
  std::string line = name + " " + salt + " ";
  for (const uint8_t byte : rpc::Sha256Of(salt, secret)) {
    line += "0123456789abcdef"[byte >> 4];
    line += "0123456789abcdef"[byte & 15];
  }
  return line + (expires.empty() ? "" : " " + expires) + "\n";
}

/// Files of a server with TLS, and who signs for whom.
class Credentials {
 public:
  Credentials() {
    Renew();
    files.Write("ca.pem", clients.pem());
    files.Write("tokens", TokenLine("ann", "right") + TokenLine("old", "right", "2000-01-01T00:00:00Z") +
                              TokenLine("proxy", "right"));
  }
  /// A new certificate of the server; the certificate.
  std::string Renew() {
    const auto pair = servers.Issue({.common_name = "server", .names = "DNS:localhost"});
    files.Write("cert.pem", pair.certificate);
    files.Write("key.pem", pair.key);
    return pair.certificate;
  }
  rpc::CredentialPaths Paths() const {
    return {.tls = {.certificate = files.Path("cert.pem"),
                    .key = files.Path("key.pem"),
                    .client_ca = files.Path("ca.pem")},
            .tokens = files.Path("tokens")};
  }
  TestServer::Options Options() const {
    TestServer::Options options;
    options.rpc.listen = {"localhost:0"};
    options.rpc.credentials = Paths();
    return options;
  }

  const Authority servers{"authority of servers"}, clients{"authority of clients"}, others{"somebody else"};
  const Files files;
};

}  // namespace tilewire::testing

// Certificates, authorities and tokens that change while calls run.
#include <grpc/grpc_security_constants.h>

#include <functional>

#include "tests/integration/tls.h"

namespace tilewire::testing {
namespace {

constexpr char kNewCertificates[] = "new certificates are used", kNewTokens[] = "new tokens are used",
               kBadCertificates[] = "certificates have changed and cannot be used",
               kBadTokens[] = "tokens have changed and cannot be used";

/// Does `change` to files and waits until the server has told `what` of it.
void ChangeAndWait(TestServer& server, const char* what, const std::function<void()>& change) {
  const int before = server.observer().told(what);
  change();
  ASSERT_TRUE(Eventually([&] { return server.observer().told(what) > before; })) << what;
}

/// The certificate that the server shows on a new connection.
std::string CertificateShown(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  v1::DescribeResponse response;
  const auto status = v1::Device::NewStub(channel)->Describe(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  const auto values = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

/// Calls without end, by new connections and by one old one.
class Callers {
 public:
  Callers(const TestServer& server, const Credentials& credentials) {
    const auto connect = [&server, &credentials] {
      return ConnectByTls(server.address(), credentials.servers.pem());
    };
    threads_.emplace_back([this, connect] {
      const auto channel = connect();
      while (!stop_) Count(Describe(channel));
    });
    threads_.emplace_back([this, connect] {
      while (!stop_) Count(Describe(connect()));
    });
  }
  void End() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }
  int good() const { return good_; }
  int bad() const { return bad_; }

 private:
  void Count(const grpc::Status& status) {
    status.ok() ? ++good_ : ++bad_;
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  std::atomic<bool> stop_{false};
  std::atomic<int> good_{0}, bad_{0};
  std::vector<std::thread> threads_;
};

TEST(Rotation, NoCallIsLostAndNewConnectionsSeeTheNewCertificate) {
  Credentials credentials;
  TestServer server(credentials.Options());
  const auto connect = [&] { return ConnectByTls(server.address(), credentials.servers.pem()); };
  const std::string data = Floats(100'000, 1);
  RawStream stream(connect());  // begun before all changes, ended after them
  ASSERT_TRUE(stream.Open(TransposeOpen(v1::DTYPE_F32, {100, 1000})));
  ASSERT_TRUE(stream.SendAll(0, data, 1 << 16, 0, 1 << 16));
  Callers callers(server, credentials);
  for (int i = 0; i < 3; ++i) {
    std::string certificate;
    ChangeAndWait(server, kNewCertificates, [&] { certificate = credentials.Renew(); });
    EXPECT_EQ(CertificateShown(connect()), certificate);
    const int good = callers.good();
    EXPECT_TRUE(Eventually([&] { return callers.good() > good + 20 || callers.bad() > 0; }));
  }
  ASSERT_TRUE(stream.SendAll(0, data, 1 << 16, 1 << 16));
  const auto status = stream.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(stream.output == HostTranspose(data, DType::kF32, {100, 1000}));
  callers.End();
  EXPECT_EQ(callers.bad(), 0);
  server.ExpectIdle();
}

TEST(Rotation, AWrongPairKeepsTheOldOne) {
  Credentials credentials;
  const std::string first = credentials.Renew();
  TestServer server(credentials.Options());
  const auto connect = [&] { return ConnectByTls(server.address(), credentials.servers.pem()); };
  const CertificateAndKey next = credentials.servers.Issue({.common_name = "s", .names = "DNS:localhost"});
  ChangeAndWait(server, kBadCertificates,
                [&] { credentials.files.Write("cert.pem", next.certificate.substr(0, 200)); });
  EXPECT_EQ(CertificateShown(connect()), first);
  ChangeAndWait(server, kBadCertificates, [&] { credentials.files.Replace("cert.pem", next.certificate); });
  EXPECT_EQ(CertificateShown(connect()), first) << "its key has not come yet";
  ChangeAndWait(server, kNewCertificates, [&] { credentials.files.Replace("key.pem", next.key); });
  EXPECT_EQ(CertificateShown(connect()), next.certificate);
}

TEST(Rotation, WhoseCertificateExpiresIsRefusedOnTheSameConnection) {
  const Credentials credentials;
  TestServer server(credentials.Options());
  // Longer where this machine takes longer to call than one is good.
  for (long seconds = 2; seconds <= 64; seconds *= 2) {
    const auto channel =
        ConnectByTls(server.address(), credentials.servers.pem(),
                     credentials.clients.Issue({.common_name = "robot", .seconds = seconds}));
    if (!Describe(channel).ok()) continue;
    EXPECT_TRUE(Eventually([&] {
      const grpc::Status status = Describe(channel);
      return status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
    }));
    return;
  }
  FAIL() << "never let in";
}

TEST(Rotation, ARemovedAuthorityLetsNobodyNewInAndCutsNobody) {
  const Credentials credentials;
  TestServer server(credentials.Options());
  const auto connect = [&](const Authority& authority) {
    return ConnectByTls(server.address(), credentials.servers.pem(),
                        authority.Issue({.common_name = "robot"}));
  };
  const auto old = connect(credentials.clients);
  EXPECT_TRUE(Describe(old).ok());
  EXPECT_EQ(Describe(connect(credentials.others)).error_code(), grpc::StatusCode::UNAVAILABLE);
  ChangeAndWait(server, kNewCertificates,
                [&] { credentials.files.Replace("ca.pem", credentials.others.pem()); });
  EXPECT_EQ(Describe(connect(credentials.clients)).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Describe(connect(credentials.others)).ok());
  EXPECT_TRUE(Describe(old).ok()) << "connections last as long as they do (--connection-idle-seconds)";
}

class TokenRotation : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Connections, TokenRotation, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Clear"; });

TEST_P(TokenRotation, TokensComeAndGoUnderTheSameConnection) {
  const Credentials credentials;
  auto options = credentials.Options();
  if (!GetParam()) options.rpc.credentials.tls = {};
  TestServer server(options);
  const auto channel =
      GetParam() ? ConnectByTls(server.address(), credentials.servers.pem()) : server.Connect();
  const auto ask = [&](const std::string& token) {
    return Describe(channel, {.certificate = {}, .metadata = {{"authorization", "Bearer " + token}}})
        .error_code();
  };
  for (int i = 0; i < 40; ++i) {  // threads know whom they had before (LastToken)
    EXPECT_EQ(ask("ann.right"), grpc::StatusCode::OK);
    EXPECT_EQ(ask(i % 2 == 0 ? "bob.right" : "ann.wrong"), grpc::StatusCode::UNAUTHENTICATED);
  }
  ChangeAndWait(server, kNewTokens, [&] { credentials.files.Replace("tokens", TokenLine("bob", "right")); });
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(ask("ann.right"), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(ask("bob.right"), grpc::StatusCode::OK);
  }
  ChangeAndWait(server, kBadTokens, [&] { credentials.files.Replace("tokens", "eve eve eve\n"); });
  EXPECT_EQ(ask("bob.right"), grpc::StatusCode::OK) << "the old ones stay";
}

}  // namespace
}  // namespace tilewire::testing

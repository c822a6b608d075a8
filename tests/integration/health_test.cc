// Health for probes that have nothing to show, beside a server that lets nobody in without; and what the
// server asks itself.
#include "tests/integration/program.h"
#include "tests/integration/tls.h"

namespace tilewire::testing {
namespace {

constexpr int kServing = 1, kNotServing = 2;

/// The status that grpc.health.v1 answers in clear, or minus the gRPC status code.
int HealthAt(const std::string& address, const std::string& service) {
  std::string request;
  if (!service.empty())
    request = std::string("\x0a") + static_cast<char>(service.size()) + service;  // field 1
  const auto reply = ByteCall(ConnectTo(address), "/grpc.health.v1.Health/Check").Unary(request);
  if (!reply.status.ok()) return -static_cast<int>(reply.status.error_code());
  return reply.bytes.size() == 2 ? reply.bytes[1] : 0;
}

/// A server that lets nobody in but those with a certificate or a token.
TestServer::Options Strict(const Credentials& credentials) {
  TestServer::Options options = credentials.Options();
  options.rpc.client_certificates_required = true;
  options.rpc.anonymous = false;
  options.rpc.health_listen = "localhost:0";
  return options;
}

TEST(HealthListener, AnswersWhoeverAsksInClear) {
  const Credentials credentials;
  TestServer server(Strict(credentials));
  const std::string address = server.rpc().health_address();
  for (const std::string service : {"", "readiness", "liveness"})
    EXPECT_EQ(HealthAt(address, service), kServing);
  EXPECT_EQ(HealthAt(address, "nobody"), -static_cast<int>(grpc::StatusCode::NOT_FOUND));
  server.rpc().SetReady(false);
  EXPECT_EQ(HealthAt(address, ""), kNotServing);
  EXPECT_EQ(HealthAt(address, "readiness"), kNotServing);
  EXPECT_EQ(HealthAt(address, "liveness"), kServing);
  server.rpc().SetLive(false);
  EXPECT_EQ(HealthAt(address, "liveness"), kNotServing);
  server.rpc().SetReady(true);
  EXPECT_EQ(HealthAt(address, ""), kServing);
}

TEST(HealthListener, AnswersNothingElse) {
  const Credentials credentials;
  TestServer::Options options = Strict(credentials);
  options.rpc.reflection = true;
  TestServer server(options);
  const auto channel = ConnectTo(server.rpc().health_address());
  for (const std::string method :
       {"/tilewire.v1.Device/Describe", "/tilewire.v1.Kernels/Compute", "/tilewire.v1.Arrays/List",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"})
    EXPECT_EQ(ByteCall(channel, method).Unary("").status.error_code(), grpc::StatusCode::UNIMPLEMENTED)
        << method;
  EXPECT_FALSE(Describe(grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials())).ok())
      << "the other listeners speak TLS";
  EXPECT_TRUE(server.observer().records().empty());
}

TEST(HealthListener, ATakenAddressIsAnError) {
  const Credentials credentials;
  TestServer server(Strict(credentials));
  TestServer::Options options = Strict(credentials);
  options.rpc.health_listen = server.rpc().health_address();
  RecordingObserver observer;
  const auto second = rpc::Server::Start(&server.engine(), &observer, options.rpc);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find(server.rpc().health_address()), std::string_view::npos);
}

TEST(HealthListener, OfTheProgramIsToldInTheLogAndGoesWithIt) {
  const Credentials credentials;
  const auto& files = credentials.files;
  Program program({"--device",         "cpu",
                   "--listen",         "localhost:0",
                   "--health-listen",  "localhost:0",
                   "--metrics-listen", "localhost:0",
                   "--tls-cert",       files.Path("cert.pem"),
                   "--tls-key",        files.Path("key.pem"),
                   "--tls-client-ca",  files.Path("ca.pem"),
                   "--tls-client",     "required",
                   "--tokens",         files.Path("tokens"),
                   "--anonymous",      "deny"});
  const std::string address = program.Ready()[0];
  const std::string health = program.LoggedAddress("serving health");
  EXPECT_EQ(HealthAt(health, ""), kServing);
  EXPECT_NE(HttpGet(program.LoggedAddress("serving metrics"), "/metrics").find("tilewire_build_info"),
            std::string::npos);
  const auto channel =
      ConnectByTls(address, credentials.servers.pem(), credentials.clients.Issue({.common_name = "robot"}));
  EXPECT_TRUE(Describe(channel).ok());
  EXPECT_TRUE(Eventually([&] { return program.err().find("identity=cn:robot") != std::string::npos; }))
      << program.err();
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0);
  EXPECT_EQ(program.err().find("PRIVATE KEY"), std::string::npos);
}

}  // namespace
}  // namespace tilewire::testing

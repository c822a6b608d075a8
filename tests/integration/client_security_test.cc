// What clients do with TLS and tokens, and how they tell what is wrong.
#include "client/cpp/client.h"
#include "tests/integration/program.h"
#include "tests/integration/tls.h"

namespace tilewire::testing {
namespace {

struct ToolOutcome {
  int code;
  std::string out, err;
};

class ClientSecurity : public ::testing::Test {
 protected:
  ClientSecurity() {
    files().Write("servers.pem", credentials_.servers.pem());
    files().Write("others.pem", credentials_.others.pem());
    files().Write("ann.token", "ann.right\n");
    files().Write("wrong.token", "ann.wrong\n");
    Keep("robot", credentials_.clients.Issue({.common_name = "robot"}));
    Keep("expired", credentials_.clients.Issue({.common_name = "robot", .expired = true}));
  }
  const Files& files() const { return credentials_.files; }
  void Keep(const std::string& name, const CertificateAndKey& pair) {
    files().Write(name + ".pem", pair.certificate);
    files().Write(name + ".key", pair.key);
  }
  /// Of the server, from now on or from its start on.
  void ShowAsServer(const Authority& authority, const Subject& subject) {
    const auto pair = authority.Issue(subject);
    files().Write("cert.pem", pair.certificate);
    files().Write("key.pem", pair.key);
  }
  std::vector<std::string> Trusting(const std::string& authorities, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--tls-ca", files().Path(authorities)});
    return more;
  }
  std::vector<std::string> Showing(const std::string& name) {
    return Trusting("servers.pem",
                    {"--tls-cert", files().Path(name + ".pem"), "--tls-key", files().Path(name + ".key")});
  }
  /// `tilewire info` with these options.
  static ToolOutcome Info(const std::string& address, std::vector<std::string> options,
                          const std::string& timeout = "20") {
    options.insert(options.begin(), {"--server", address, "--timeout", timeout});
    options.emplace_back("info");
    Program tool(TILEWIRE_TILEWIRE, options);
    const int code = tool.Wait(60);
    return {code, tool.out(), tool.err()};
  }
  static void ExpectSays(const ToolOutcome& outcome, int code, const std::string& words) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " is not in " << outcome.err;
    EXPECT_EQ(outcome.err.find("right"), std::string::npos) << "no secret is told";
  }
  Credentials credentials_;
};

TEST_F(ClientSecurity, TheToolGetsInByTokenAndByCertificate) {
  TestServer::Options options = credentials_.Options();
  options.rpc.anonymous = false;
  TestServer server(options);
  const std::string token = files().Path("ann.token");
  const auto by_token = Info(server.address(), Trusting("servers.pem", {"--token-file", token}));
  EXPECT_EQ(by_token.code, 0) << by_token.err;
  const auto by_certificate = Info(server.address(), Showing("robot"));
  EXPECT_EQ(by_certificate.code, 0) << by_certificate.err;
  setenv("TILEWIRE_TLS_CA", files().Path("servers.pem").c_str(), 1);
  setenv("TILEWIRE_TOKEN_FILE", token.c_str(), 1);
  const auto by_environment = Info(server.address(), {});
  unsetenv("TILEWIRE_TLS_CA");
  unsetenv("TILEWIRE_TOKEN_FILE");
  EXPECT_EQ(by_environment.code, 0) << by_environment.err;
  ASSERT_TRUE(Eventually([&] { return server.observer().records().size() == 3; }));
  std::vector<std::string> callers;
  for (const auto& record : server.observer().records()) callers.push_back(record.identity);
  EXPECT_EQ(callers, (std::vector<std::string>{"token:ann", "cn:robot", "token:ann"}));
  ExpectSays(Info(server.address(), Trusting("servers.pem")), 1, "UNAUTHENTICATED");
  ExpectSays(Info(server.address(), Trusting("servers.pem", {"--token-file", files().Path("wrong.token")})),
             1, "UNAUTHENTICATED");
}

TEST_F(ClientSecurity, WhatIsWrongWithTheServerIsSaidInWords) {
  TestServer clear;
  ExpectSays(Info(clear.address(), Trusting("servers.pem")), 1, "the server does not speak TLS");
  {
    TestServer server(credentials_.Options());
    ExpectSays(Info(server.address(), {}), 1, "the server speaks TLS");
    ExpectSays(Info(server.address(), Trusting("others.pem")), 1, "is not trusted by --tls-ca");
    ExpectSays(
        Info("127.0.0.1" + server.address().substr(server.address().rfind(':')), Trusting("servers.pem")), 1,
        "the server's certificate is for another name");
    ExpectSays(Info(server.address(), Showing("expired")), 1, "the server refuses the client's certificate");
  }
  ShowAsServer(credentials_.servers, {.common_name = "s", .names = "DNS:localhost", .expired = true});
  {
    TestServer server(credentials_.Options());
    ExpectSays(Info(server.address(), Trusting("servers.pem")), 1, "the server's certificate has expired");
  }
  ShowAsServer(credentials_.servers, {.common_name = "s", .names = "DNS:localhost"});
  TestServer::Options options = credentials_.Options();
  options.rpc.client_certificates_required = true;
  TestServer server(options);
  ExpectSays(Info(server.address(), Trusting("servers.pem")), 1, "or that there is none");
}

/// Nor looked into for seconds, by which --timeout would have passed.
TEST_F(ClientSecurity, WhereNobodyListensNothingIsSaidOfTls) {
  ExpectSays(Info("127.0.0.1:1", {}, "1"), 1, "Connection refused");
  ExpectSays(Info("127.0.0.1:1", Trusting("servers.pem"), "1"), 1, "Connection refused");
}

TEST_F(ClientSecurity, WrongFilesAndOptionsAreUsageErrors) {
  const std::string nowhere = "localhost:1", token = files().Path("ann.token");
  ExpectSays(Info(nowhere, {"--tls-ca", files().Path("absent")}), 2, "--tls-ca");
  ExpectSays(Info(nowhere, {"--tls-ca", token}), 2, "CERTIFICATE");
  ExpectSays(Info(nowhere, {"--tls-cert", files().Path("robot.pem")}), 2, "--tls-key");
  ExpectSays(Info(nowhere, {"--tls-cert", files().Path("robot.pem"), "--tls-key", files().Path("robot.key")}),
             2, "--tls-ca");
  ExpectSays(Info(nowhere, {"--token-file", files().Write("empty", "")}), 2, "--token-file");
  ExpectSays(Info(nowhere, {"--token-file", files().Write("words", "no token here\n")}), 2, "NAME.SECRET");
}

TEST_F(ClientSecurity, ATokenIsNotSentInClearBeyondTheHost) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  options.rpc.credentials.tokens = files().Path("tokens");
  options.rpc.anonymous = false;
  TestServer server(options);
  const std::vector<std::string> token{"--token-file", files().Path("ann.token")};
  EXPECT_EQ(Info(server.address(), token).code, 0) << "loopback";
  EXPECT_TRUE(Eventually([&] { return server.observer().records().size() == 1; }));
  // Leads here too, but nothing says so.
  const std::string elsewhere = "0.0.0.0" + server.address().substr(server.address().rfind(':'));
  ExpectSays(Info(elsewhere, token), 1, "INVALID_ARGUMENT");
  EXPECT_EQ(server.observer().records().size(), 1u) << "nothing was sent";
  EXPECT_EQ(Info(elsewhere, {token[0], token[1], "--insecure"}).code, 0);
}

TEST_F(ClientSecurity, StreamsOfOneCallHaveTheTokenOnAllConnectionsThatMayHaveIt) {
  const std::vector<float> zeros(1 << 20), ones(1 << 20, 1.0f);
  const ArraySpec spec = MakeSpec(DType::kF32, std::vector<int64_t>{1 << 20}).value();
  const auto streams = [&](const TestServer& server, const client::ConnectOptions& connect) {
    auto client = client::Client::Connect(server.address(), connect);
    client::CallOptions options;
    options.form = client::CallForm::kStream;
    options.connections = 3;
    const auto reply = client.Rmse(client::ArraySource::FromMemory(spec, zeros.data()),
                                   client::ArraySource::FromMemory(spec, ones.data()), {}, options);
    EXPECT_TRUE(reply) << reply.error().ToString();
    if (!reply) return 0U;
    EXPECT_EQ(reply->values, std::vector<double>{1.0});
    return reply->reply.timing.streams;
  };
  // One that comes when the others have sent all is not needed.
  const auto call = [&](const TestServer& server, const client::ConnectOptions& connect) {
    EXPECT_TRUE(Eventually([&] { return HasFailure() || streams(server, connect) == 3; }));
  };
  TestServer::Options options = credentials_.Options();
  options.rpc.anonymous = false;
  TestServer server(options);
  call(server, {.tls = client::TlsOptions{.ca = credentials_.servers.pem()}, .token = "ann.right"});
  // A server in clear that sends its clients to another host, who must not get the token.
  TestServer::Options clear;
  clear.rpc.credentials.tokens = files().Path("tokens");
  clear.rpc.anonymous = false;
  clear.rpc.advertise = {"192.0.2.1:1"};
  TestServer luring(clear);
  call(luring, {.token = "ann.right"});
}

}  // namespace
}  // namespace tilewire::testing

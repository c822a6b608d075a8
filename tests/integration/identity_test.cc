// Who calls, over real sockets: every kind of identity, right, wrong, expired and missing, for every method.
#include <algorithm>

#include "tests/integration/program.h"
#include "tests/integration/tls.h"
#include "tilewire/v1/arrays.grpc.pb.h"
#include "tilewire/v1/regions.pb.h"

namespace tilewire::testing {
namespace {

constexpr auto kUnauthenticated = grpc::StatusCode::UNAUTHENTICATED;

std::string Bearer(const std::string& token) {
  return "Bearer " + token;
}

/// The identity that the record of the last call says.
std::string LastIdentity(TestServer& server, size_t calls) {
  EXPECT_TRUE(Eventually([&] { return server.observer().records().size() >= calls; }));
  const auto records = server.observer().records();
  return records.empty() ? "" : records.back().identity;
}

class Identity : public ::testing::Test {
 protected:
  CertificateAndKey Certificate(const std::string& common_name, const std::string& names = "") {
    return credentials_.clients.Issue({.common_name = common_name, .names = names});
  }
  std::shared_ptr<grpc::Channel> Connect(const TestServer& server, const CertificateAndKey& own = {}) {
    return ConnectByTls(server.address(), credentials_.servers.pem(), own);
  }
  Credentials credentials_;
};

TEST_F(Identity, EveryKindIsTypedAndWhatIsInvalidIsNeverTheNextKind) {
  TestServer::Options options = credentials_.Options();
  options.rpc.identity_header = "x-user";
  options.rpc.trusted_proxies = {{rpc::IdentityKind::kDns, "proxy.example"},
                                 {rpc::IdentityKind::kToken, "proxy"}};
  TestServer server(options);
  const CertificateAndKey spiffe = Certificate("x", "DNS:host.example,URI:spiffe://domain/job"),
                          dns = Certificate("x", "DNS:Host.Example"), cn = Certificate("robot"),
                          proxy = Certificate("x", "DNS:proxy.example"),
                          two = Certificate("x", "URI:spiffe://a/b,URI:spiffe://a/c"),
                          nobody = Certificate("");
  const std::string right = Bearer("ann.right"), trusted = Bearer("proxy.right");
  struct Case {
    Shown shown;
    std::string identity;  ///< empty: refused
  };
  const std::vector<Case> all{{{}, "anonymous"},
                              {{spiffe, {}}, "spiffe://domain/job"},
                              {{dns, {}}, "dns:host.example"},
                              {{cn, {}}, "cn:robot"},
                              {{two, {}}, ""},
                              {{nobody, {}}, ""},
                              {{{}, {{"authorization", right}}}, "token:ann"},
                              {{{}, {{"authorization", "bearer ann.right"}}}, "token:ann"},
                              {{cn, {{"authorization", right}}}, "token:ann"},
                              {{{}, {{"authorization", Bearer("ann.wrong")}}}, ""},
                              {{cn, {{"authorization", Bearer("ann.wrong")}}}, ""},
                              {{{}, {{"authorization", Bearer("old.right")}}}, ""},
                              {{{}, {{"authorization", Bearer("eve.right")}}}, ""},
                              {{{}, {{"authorization", "Basic YW5uOnJpZ2h0"}}}, ""},
                              {{{}, {{"authorization", right}, {"authorization", right}}}, ""},
                              {{two, {{"authorization", right}}}, ""},
                              // The header counts from proxies alone, and must be there from them.
                              {{{}, {{"x-user", "eve"}}}, "anonymous"},
                              {{cn, {{"x-user", "eve"}}}, "cn:robot"},
                              {{{}, {{"authorization", right}, {"x-user", "eve"}}}, "token:ann"},
                              {{proxy, {{"x-user", "bob"}}}, "header:bob"},
                              {{{}, {{"authorization", trusted}, {"x-user", "bob"}}}, "header:bob"},
                              {{proxy, {{"authorization", right}, {"x-user", "bob"}}}, "header:bob"},
                              {{proxy, {{"authorization", Bearer("ann.wrong")}, {"x-user", "bob"}}}, ""},
                              {{proxy, {}}, ""},
                              {{proxy, {{"x-user", ""}}}, ""},
                              {{proxy, {{"x-user", "bob"}, {"x-user", "bob"}}}, ""}};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto channel = Connect(server, all[i].shown.certificate);
    ASSERT_TRUE(Connected(channel)) << i;
    const grpc::Status status = Describe(channel, all[i].shown);
    EXPECT_EQ(LastIdentity(server, i + 1), all[i].identity) << i;
    if (all[i].identity.empty()) {
      ExpectError(status, kUnauthenticated, "IDENTITY", ErrorInfoOf(status).metadata().at("field"));
      EXPECT_EQ(status.error_message().find("right"), std::string::npos) << "no secret is told";
    } else {
      EXPECT_TRUE(status.ok()) << i << ": " << status.error_message();
    }
  }
  server.ExpectIdle();
}

TEST_F(Identity, CertificatesThatAreNotGoodNeverGetIn) {
  TestServer server(credentials_.Options());
  const CertificateAndKey expired = credentials_.clients.Issue({.common_name = "robot", .expired = true}),
                          others = credentials_.others.Issue({.common_name = "robot"});
  for (const CertificateAndKey& own : {expired, others})
    EXPECT_EQ(Describe(Connect(server, own)).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(server.observer().records().empty());
  EXPECT_TRUE(Describe(Connect(server, Certificate("robot"))).ok());
  // Nor do those in clear, who have nothing to say that a handshake understands.
  EXPECT_FALSE(Describe(grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials())).ok());
}

TEST_F(Identity, WhereCertificatesAreRequiredNobodyIsWithout) {
  TestServer::Options options = credentials_.Options();
  options.rpc.client_certificates_required = true;
  TestServer server(options);
  const Shown token{.certificate = {}, .metadata = {{"authorization", Bearer("ann.right")}}};
  EXPECT_EQ(Describe(Connect(server), token).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Describe(Connect(server, Certificate("robot"))).ok());
  EXPECT_EQ(LastIdentity(server, 1), "cn:robot");
}

TEST_F(Identity, WithoutAuthoritiesForThemNoClientIsAskedForACertificate) {
  TestServer::Options options = credentials_.Options();
  options.rpc.credentials.tls.client_ca.clear();
  TestServer server(options);
  // Not even one that the server's own certificate, which has to stand in for authorities, could vouch for.
  for (const CertificateAndKey& own :
       {CertificateAndKey{}, Certificate("robot"), credentials_.servers.Issue({.common_name = "x"})})
    EXPECT_TRUE(Describe(Connect(server, own)).ok());
  EXPECT_EQ(LastIdentity(server, 3), "anonymous");
}

TEST_F(Identity, EveryMethodAsks) {
  TestServer::Options options = credentials_.Options();
  options.rpc.anonymous = false;
  TestServer server(options);
  const auto channel = Connect(server);
  int methods = 0;
  for (const auto* file :
       {v1::Open::descriptor()->file(), v1::StatRequest::descriptor()->file(),
        v1::RegisterRequest::descriptor()->file(), v1::DescribeRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int k = 0; k < file->service(i)->method_count(); ++k, ++methods) {
        const auto* method = file->service(i)->method(k);
        const std::string path = "/" + method->service()->full_name() + "/" + method->name();
        for (const std::string token : {"", "ann.wrong", "old.right", "ann.right"}) {
          ByteCall call(channel, path);
          if (!token.empty()) call.context.AddMetadata("authorization", Bearer(token));
          const grpc::Status status = call.Unary("").status;
          EXPECT_EQ(status.error_code() == kUnauthenticated, token != "ann.right")
              << path << " " << token << ": " << status.error_message();
        }
      }
    }
  }
  EXPECT_GE(methods, 15);
  server.ExpectIdle();
}

TEST_F(Identity, ArraysBelongToTheKindAndTheName) {
  TestServer server(credentials_.Options());
  const auto put = [&](const std::shared_ptr<grpc::Channel>& channel, const Shown& shown) {
    grpc::ClientContext context;
    for (const auto& [key, value] : shown.metadata) context.AddMetadata(key, value);
    const auto stub = v1::Arrays::NewStub(channel);
    const auto stream = stub->Put(&context);
    v1::ExecuteRequest request;
    request.mutable_open()->mutable_put();
    SetSpec(request.mutable_open()->add_operands(), v1::DTYPE_F32, {4});
    stream->Write(request);
    request.mutable_chunk()->set_data(std::string(16, 'x'));
    stream->Write(request);
    stream->WritesDone();
    std::string id;
    for (v1::ExecuteResponse response; stream->Read(&response);)
      if (response.has_result()) id = response.result().results(0).array();
    EXPECT_TRUE(stream->Finish().ok());
    return id;
  };
  const auto stat = [&](const std::shared_ptr<grpc::Channel>& channel, const Shown& shown,
                        const std::string& id) {
    grpc::ClientContext context;
    for (const auto& [key, value] : shown.metadata) context.AddMetadata(key, value);
    v1::StatRequest request;
    request.set_array(id);
    v1::ArrayInfo info;
    return v1::Arrays::NewStub(channel)->Stat(&context, request, &info).error_code();
  };
  const auto plain = Connect(server), robot = Connect(server, Certificate("ann"));
  const Shown token{.certificate = {}, .metadata = {{"authorization", Bearer("ann.right")}}};
  const std::string id = put(plain, token);
  EXPECT_EQ(stat(plain, token, id), grpc::StatusCode::OK);
  EXPECT_EQ(stat(robot, token, id), grpc::StatusCode::OK);
  EXPECT_EQ(stat(plain, {}, id), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(stat(robot, {}, id), grpc::StatusCode::NOT_FOUND) << "cn:ann is not token:ann";
}

}  // namespace
}  // namespace tilewire::testing

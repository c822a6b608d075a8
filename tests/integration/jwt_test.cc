// Callers whom another authority names (JWT), over real sockets: right, wrong and expired, for every method;
// and keys that change while they call.
#include <functional>

#include "server/rpc/policy_words.h"
#include "tests/integration/arrays.h"
#include "tests/integration/program.h"
#include "tests/integration/tls.h"
#include "tests/unit/jwt.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

/// How the server tells of its file of keys.
constexpr char kNewKeys[] = "new keys of --jwks are used",
               kBadKeys[] = "keys of --jwks have changed and cannot be used, so the old ones stay";

class JwtTest : public ::testing::Test {
 protected:
  JwtTest() { PutKeys({key_}); }
  void PutKeys(const std::vector<SigningKey>& keys) {
    std::vector<json> jwks;
    for (const SigningKey& key : keys) jwks.push_back(key.Jwk(std::to_string(jwks.size())));
    credentials_.files.Replace("jwks.json", KeySet(jwks));
  }
  /// A server by TLS with tokens of both kinds.
  TestServer::Options Options() {
    TestServer::Options options = credentials_.Options();
    options.rpc.credentials.jwks = credentials_.files.Path("jwks.json");
    options.rpc.credentials.jwt = {.issuer = "https://issuer", .audience = "tilewire"};
    return options;
  }
  std::string Token(const json& claims, const std::string& kid = "0") const {
    return key_.Sign({{"alg", key_.algorithm()}, {"kid", kid}, {"typ", "JWT"}}, claims);
  }
  static json ClaimsWith(const char* key, const json& value) {
    json claims = GoodClaims("ann");
    claims[key] = value;
    return claims;
  }
  static Shown By(const std::string& token, const CertificateAndKey& certificate = {}) {
    return {.certificate = certificate, .metadata = {{"authorization", "Bearer " + token}}};
  }
  std::shared_ptr<grpc::Channel> Connect(const TestServer& server, const CertificateAndKey& own = {}) {
    return ConnectByTls(server.address(), credentials_.servers.pem(), own);
  }

  Credentials credentials_;
  const SigningKey key_ = SigningKey::Ec();
};

TEST_F(JwtTest, TheyAreAKindOfTheirOwnAndWhatIsInvalidIsNeverTheNextKind) {
  TestServer::Options options = Options();
  options.rpc.identity_header = "x-user";
  options.rpc.trusted_proxies = {{rpc::IdentityKind::kJwt, "proxy"}};
  TestServer server(options);
  const CertificateAndKey robot = credentials_.clients.Issue({.common_name = "robot"});
  const std::string good = Token(GoodClaims("ann")), expired = Token(ClaimsWith("exp", SecondsFromNow(-61))),
                    strange = SigningKey::Ec().Sign({{"alg", "ES256"}, {"kid", "0"}}, GoodClaims("ann")),
                    none =
                        Base64Url(R"({"alg":"none","kid":"0"})") + "." + Base64Url(GoodClaims("ann").dump());
  struct Case {
    const char* what;
    Shown shown;
    std::string identity;  ///< empty: refused
  };
  const std::vector<Case> all{
      {"right", By(good), "jwt:ann"},
      {"right, beside a certificate", By(good, robot), "jwt:ann"},
      {"a line of the file, which is another ann", By("ann.right"), "token:ann"},
      {"expired within the clocks' difference", By(Token(ClaimsWith("exp", SecondsFromNow(-1)))), "jwt:ann"},
      {"expired", By(expired), ""},
      {"expired, beside a certificate", By(expired, robot), ""},
      {"not good yet", By(Token(ClaimsWith("nbf", SecondsFromNow(1000)))), ""},
      {"another's", By(strange), ""},
      {"another's, beside a certificate", By(strange, robot), ""},
      {"nobody's", By(none + "."), ""},
      {"nobody's with something for a signature", By(none + ".AAAA"), ""},
      {"for another audience", By(Token(ClaimsWith("aud", "others"))), ""},
      {"of another issuer", By(Token(ClaimsWith("iss", "https://others"))), ""},
      {"of no key", By(Token(GoodClaims("ann"), "1")), ""},
      {"a proxy's",
       {{}, {{"authorization", "Bearer " + Token(GoodClaims("proxy"))}, {"x-user", "bob"}}},
       "header:bob"},
      {"a proxy's without the header", By(Token(GoodClaims("proxy"))), ""},
      {"no proxy's", {{}, {{"authorization", "Bearer " + good}, {"x-user", "bob"}}}, "jwt:ann"},
      {"twice", {{}, {{"authorization", "Bearer " + good}, {"authorization", "Bearer " + good}}}, ""}};
  size_t calls = 0;
  for (const Case& one : all) {
    const auto channel = Connect(server, one.shown.certificate);
    const grpc::Status status = Describe(channel, one.shown);
    ++calls;
    ASSERT_TRUE(Eventually([&] { return server.observer().records().size() >= calls; }));
    EXPECT_EQ(server.observer().records().back().identity, one.identity) << one.what;
    EXPECT_EQ(status.ok(), !one.identity.empty()) << one.what << ": " << status.error_message();
    if (status.ok()) continue;
    EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED) << one.what;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "IDENTITY") << one.what;
  }
  server.ExpectIdle();
}

/// A method × what its caller shows.
TEST_F(JwtTest, EveryMethodAsksAndThePolicyKnowsThem) {
  credentials_.files.Write("policy.json", R"({"rules": [
      {"who": ["jwt:root"], "methods": ["*"], "admin": true},
      {"who": ["jwt:a*"], "methods": ["Device.Describe"]},
      {"who": ["token:*"], "methods": ["*"], "admin": true}]})");
  TestServer::Options options = Options();
  options.rpc.credentials.policy = credentials_.files.Path("policy.json");
  TestServer server(options);
  const auto channel = Connect(server);
  struct Caller {
    std::string token;
    StatusCode refused;  ///< OK: no method is
  };
  const Caller callers[] = {{Token(GoodClaims("root")), StatusCode::OK},
                            {Token(GoodClaims("ann")), StatusCode::PERMISSION_DENIED},
                            {Token(GoodClaims("bob")), StatusCode::PERMISSION_DENIED},
                            {Token(ClaimsWith("exp", 1)), StatusCode::UNAUTHENTICATED},
                            {Token(GoodClaims("root")) + "x", StatusCode::UNAUTHENTICATED}};
  const auto methods = rpc::WordsOfPolicies().methods;
  EXPECT_GE(methods.size(), 15u);
  for (const std::string& method : methods) {
    for (size_t i = 0; i < std::size(callers); ++i) {
      ByteCall call(channel, "/tilewire.v1." + method.substr(0, method.find('.')) + "/" +
                                 method.substr(method.find('.') + 1));
      call.context.AddMetadata("authorization", "Bearer " + callers[i].token);
      const StatusCode code = call.Unary("").status.error_code();
      if (callers[i].refused == StatusCode::OK || (i == 1 && method == "Device.Describe")) {
        EXPECT_NE(code, StatusCode::PERMISSION_DENIED) << method << " " << i;
        EXPECT_NE(code, StatusCode::UNAUTHENTICATED) << method << " " << i;
      } else {
        EXPECT_EQ(code, callers[i].refused) << method << " " << i;
      }
    }
  }
  server.ExpectIdle();
}

TEST_F(JwtTest, ArraysOfOneKindAreUnknownToTheOther) {
  TestServer server(Options());
  const auto arrays = v1::Arrays::NewStub(Connect(server));
  const auto context = [](const std::string& token) {
    auto made = std::make_unique<grpc::ClientContext>();
    made->AddMetadata("authorization", "Bearer " + token);
    return made;
  };
  const std::string jwt = Token(GoodClaims("ann"));
  const auto storing = context(jwt);
  const auto stream = arrays->Put(storing.get());
  v1::ExecuteRequest request;
  *request.mutable_open() = PutOpen(v1::DTYPE_F32, {4});
  stream->Write(request);
  request.mutable_chunk()->set_data(std::string(16, 'x'));
  stream->Write(request);
  stream->WritesDone();
  v1::StatRequest stat;
  for (v1::ExecuteResponse response; stream->Read(&response);)
    if (response.has_result()) stat.set_array(response.result().results(0).array());
  ASSERT_TRUE(stream->Finish().ok());
  v1::ArrayInfo info;
  EXPECT_EQ(arrays->Stat(context(jwt).get(), stat, &info).error_code(), StatusCode::OK);
  EXPECT_EQ(arrays->Stat(context(Token(GoodClaims("ann"))).get(), stat, &info).error_code(), StatusCode::OK)
      << "a newer token of the same caller";
  EXPECT_EQ(arrays->Stat(context("ann.right").get(), stat, &info).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(arrays->Stat(context(Token(GoodClaims("bob"))).get(), stat, &info).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(JwtTest, KeysComeAndGoWhileCallsRunAndNoneIsLost) {
  TestServer server(Options());
  const SigningKey second = SigningKey::Rsa();
  const std::string of_first = Token(GoodClaims("ann")),
                    of_second = second.Sign({{"alg", "RS256"}, {"kid", "1"}}, GoodClaims("bob"));
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, bad{0};
  std::thread caller([&] {  // whose key stays
    const auto own = Connect(server);
    while (!stop) Describe(own, By(of_first)).ok() ? ++good : ++bad;
  });
  const auto change = [&](const char* told, const std::function<void()>& by) {
    const int before = server.observer().told(told);
    by();
    EXPECT_TRUE(Eventually([&] { return server.observer().told(told) > before; })) << told;
  };
  const auto channel = Connect(server);
  const auto asks = [&](const std::string& token) { return Describe(channel, By(token)).error_code(); };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(asks(of_second), StatusCode::UNAUTHENTICATED);
    change(kNewKeys, [&] { PutKeys({key_, second}); });
    EXPECT_EQ(asks(of_second), StatusCode::OK);
    change(kBadKeys,
           [&] { credentials_.files.Replace("jwks.json", R"({"keys": [{"kty": "oct", "k": "AAAA"}]})"); });
    EXPECT_EQ(asks(of_second), StatusCode::OK) << "the old ones stay, whole";
    change(kNewKeys, [&] { PutKeys({key_}); });
    EXPECT_EQ(asks(of_second), StatusCode::UNAUTHENTICATED) << "though it was good a moment ago";
    const int calls = good;
    EXPECT_TRUE(Eventually([&] { return good > calls + 10 || bad > 0; }));
  }
  stop = true;
  caller.join();
  EXPECT_EQ(bad, 0);
  server.ExpectIdle();
}

/// The program, confined, in clear on loopback and with nothing but JWT; the client's with a token in a file.
TEST_F(JwtTest, ProgramsTakeThemAndReadNewKeys) {
  const std::string keys = credentials_.files.Path("jwks.json");
  const std::vector<std::string> arguments{"--device",       "cpu",      "--listen",     "127.0.0.1:0",
                                           "--jwks",         keys,       "--jwt-issuer", "https://issuer",
                                           "--jwt-audience", "tilewire", "--anonymous",  "deny"};
  Program server(arguments);
  const auto ready = server.Ready();
  ASSERT_EQ(ready.size(), 1u) << server.err();
  const auto info = [&](const std::string& token) {
    Program client(TILEWIRE_TILEWIRE,
                   {"--server", ready[0], "--token-file", credentials_.files.Write("token", token), "info"});
    return client.Wait(60);
  };
  const std::string good = Token(GoodClaims("ann"));
  EXPECT_EQ(info(good), 0) << server.err();
  EXPECT_EQ(info("ann.right"), 1) << "there is no such file here";
  const SigningKey next = SigningKey::Ed();
  PutKeys({next});
  EXPECT_TRUE(Eventually([&] { return server.err().find(kNewKeys) != std::string::npos; })) << server.err();
  EXPECT_EQ(info(good), 1);
  EXPECT_EQ(info(next.Sign({{"alg", "EdDSA"}}, GoodClaims("bob"))), 0) << server.err();

  auto check = arguments;
  check.push_back("--check-config");
  Program right(check);
  EXPECT_EQ(right.Wait(60), 0) << right.err();
  credentials_.files.Write("jwks.json", KeySet({SigningKey::Rsa(1024).Jwk("weak")}));
  Program wrong(check);
  EXPECT_EQ(wrong.Wait(60), 2);
  EXPECT_NE(wrong.err().find("keys[0].n is 1024 bits long; allowed: 2048 to 8192"), std::string::npos)
      << wrong.err();
}

}  // namespace
}  // namespace tilewire::testing

// What callers may: every method for every kind of caller, and a policy that changes while they call.
#include <grpcpp/generic/generic_stub.h>

#include <map>
#include <set>

#include "server/rpc/policy_words.h"
#include "tests/integration/program.h"
#include "tests/integration/tls.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

const char* const kPolicy = R"({
  "groups": {"staff": ["spiffe://domain/admin", "header:root"]},
  "rules": [
    {"who": ["staff"], "methods": ["*"], "admin": true},
    {"who": ["token:ann"], "methods": ["Kernels.*", "Device.Describe"], "operations": ["rmse"], "max_bytes": "1MiB"},
    {"who": ["header:*"], "methods": ["Device.Describe"]}
  ]})";

/// "Kernels.Rmse" as a path of HTTP/2.
std::string PathOf(const std::string& method) {
  std::string path = "/tilewire.v1." + method;
  path[path.rfind('.')] = '/';
  return path;
}

class PolicyTest : public ::testing::Test {
 protected:
  TestServer::Options Options(const std::string& policy = kPolicy) {
    credentials_.files.Write("policy.json", policy);
    TestServer::Options options = credentials_.Options();
    options.rpc.credentials.policy = credentials_.files.Path("policy.json");
    options.rpc.identity_header = "x-user";
    options.rpc.trusted_proxies = {{rpc::IdentityKind::kToken, "proxy"}};
    return options;
  }
  std::shared_ptr<grpc::Channel> Connect(const TestServer& server, const CertificateAndKey& own = {}) {
    return ConnectByTls(server.address(), credentials_.servers.pem(), own);
  }
  CertificateAndKey Certificate(const std::string& names) {
    return credentials_.clients.Issue({.common_name = "x", .names = names});
  }
  static std::pair<std::string, std::string> Bearer(const std::string& token) {
    return {"authorization", "Bearer " + token};
  }
  static grpc::Status Rmse(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
                           int64_t elements) {
    RawStream stream(channel);
    stream.context.AddMetadata("authorization", "Bearer " + token);
    if (stream.Open(RmseOpen(v1::DTYPE_F32, {elements}))) {
      const std::string data = Floats(static_cast<size_t>(elements), 1);
      stream.SendAll(0, data);
      stream.SendAll(1, data);
    }
    return stream.End();
  }
  Credentials credentials_;
};

/// DESIGN: a method × a caller × how he shows who he is. An empty message: whoever may call is told what is
/// wrong with it, or answered.
TEST_F(PolicyTest, EveryMethodForEveryCaller) {
  TestServer server(Options());
  const std::set<std::string> anns{"Kernels.Rmse",    "Kernels.Transpose", "Kernels.GaussianPdf",
                                   "Kernels.Compute", "Kernels.Execute",   "Device.Describe"};
  struct Caller {
    const char* what;
    Shown shown;
    StatusCode refused;             ///< where he may not
    std::set<std::string> allowed;  ///< methods
    bool everything = false;
  };
  const Caller callers[] = {
      {"nobody", {}, StatusCode::PERMISSION_DENIED, {}},
      {"wrong token", {{}, {Bearer("ann.wrong")}}, StatusCode::UNAUTHENTICATED, {}},
      {"expired token", {{}, {Bearer("old.right")}}, StatusCode::UNAUTHENTICATED, {}},
      {"certificate without a rule",
       {Certificate("DNS:host.example"), {}},
       StatusCode::PERMISSION_DENIED,
       {}},
      {"token", {{}, {Bearer("ann.right")}}, StatusCode::PERMISSION_DENIED, anns},
      {"token beside a certificate of staff",
       {Certificate("URI:spiffe://domain/admin"), {Bearer("ann.right")}},
       StatusCode::PERMISSION_DENIED,
       anns},
      {"certificate of staff", {Certificate("URI:spiffe://domain/admin"), {}}, StatusCode::OK, {}, true},
      {"header of staff", {{}, {Bearer("proxy.right"), {"x-user", "root"}}}, StatusCode::OK, {}, true},
      {"header",
       {{}, {Bearer("proxy.right"), {"x-user", "bob"}}},
       StatusCode::PERMISSION_DENIED,
       {"Device.Describe"}},
      {"proxy without a header", {{}, {Bearer("proxy.right")}}, StatusCode::UNAUTHENTICATED, {}}};
  const auto methods = rpc::WordsOfPolicies().methods;
  EXPECT_GE(methods.size(), 15u);
  for (const Caller& caller : callers) {
    const auto channel = Connect(server, caller.shown.certificate);
    for (const std::string& method : methods) {
      ByteCall call(channel, PathOf(method));
      for (const auto& [key, value] : caller.shown.metadata) call.context.AddMetadata(key, value);
      const grpc::Status status = call.Unary("").status;
      const bool allowed = caller.everything || caller.allowed.contains(method);
      const std::string what = std::string(caller.what) + ", " + method + ": " + status.error_message();
      if (!allowed) {
        EXPECT_EQ(status.error_code(), caller.refused) << what;
        EXPECT_EQ(ErrorInfoOf(status).reason(),
                  caller.refused == StatusCode::UNAUTHENTICATED ? "IDENTITY" : "POLICY")
            << what;
      } else {
        EXPECT_NE(status.error_code(), StatusCode::PERMISSION_DENIED) << what;
        EXPECT_NE(status.error_code(), StatusCode::UNAUTHENTICATED) << what;
      }
    }
  }
  server.ExpectIdle();
}

TEST_F(PolicyTest, OperationsAndSizesAreLookedAtBeforeAnythingIsRun) {
  TestServer server(Options());
  const auto channel = Connect(server);
  EXPECT_TRUE(Rmse(channel, "ann.right", 1000).ok());
  ExpectError(Rmse(channel, "ann.right", 1 << 18), StatusCode::PERMISSION_DENIED, "POLICY", "bytes");
  RawStream transpose(channel);
  transpose.context.AddMetadata("authorization", "Bearer ann.right");
  EXPECT_FALSE(transpose.Open(TransposeOpen(v1::DTYPE_F32, {10, 10})));
  ExpectError(transpose.Drain(), StatusCode::PERMISSION_DENIED, "POLICY", "operation");
  server.ExpectIdle();
}

TEST_F(PolicyTest, ANewPolicyHoldsForTheNextCallAndOneThatIsWrongNever) {
  TestServer server(Options());
  const auto channel = Connect(server);
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, bad{0};
  std::thread staff([&] {  // whom every version lets in
    const auto own = Connect(server, Certificate("URI:spiffe://domain/admin"));
    while (!stop) Describe(own).ok() ? ++good : ++bad;
  });
  const auto change = [&](const std::string& text, const char* told) {
    const int before = server.observer().told(told);
    credentials_.files.Write("policy.json", text);
    EXPECT_TRUE(Eventually([&] { return server.observer().told(told) > before; })) << told;
  };
  const std::string none = R"({"rules": [{"who": ["spiffe://domain/*"], "methods": ["*"]}]})";
  const char* const kUsed = "new rules of the policy are used";
  for (int i = 0; i < 3; ++i) {
    change(none, kUsed);
    ExpectError(Rmse(channel, "ann.right", 10), StatusCode::PERMISSION_DENIED, "POLICY", "identity");
    change("{\"rules\": [" + std::string(static_cast<size_t>(i), ' '),
           "rules of the policy have changed and cannot be used");
    ExpectError(Rmse(channel, "ann.right", 10), StatusCode::PERMISSION_DENIED, "POLICY", "identity");
    change(kPolicy, kUsed);
    EXPECT_TRUE(Rmse(channel, "ann.right", 10).ok());
  }
  stop = true;
  staff.join();
  EXPECT_GT(good, 0);
  EXPECT_EQ(bad, 0);
}

TEST_F(PolicyTest, ACallGoesToItsEndByThePolicyOfWhenItCame) {
  TestServer server(Options());
  RawStream stream(Connect(server));
  stream.context.AddMetadata("authorization", "Bearer ann.right");
  stream.Start();
  ASSERT_TRUE(Eventually([&] { return server.observer().started() == 1; }));
  credentials_.files.Write("policy.json", R"({"rules": [{"who": ["anonymous"], "methods": ["*"]}]})");
  ASSERT_TRUE(Eventually([&] { return server.observer().told("new rules of the policy are used") == 1; }));
  ExpectError(Rmse(Connect(server), "ann.right", 10), StatusCode::PERMISSION_DENIED, "POLICY", "identity");
  EXPECT_TRUE(stream.Open(RmseOpen(v1::DTYPE_F32, {1})));
  for (const uint32_t operand : {0u, 1u}) EXPECT_TRUE(stream.Send(operand, 0, "4444"));
  const grpc::Status status = stream.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  server.ExpectIdle();
}

TEST_F(PolicyTest, RatesOfARuleAreOfEachWhomItNamesAndANewRateGivesNothingBack) {
  const auto rule = [](const std::string& limits) {
    return R"({"rules": [{"who": ["token:ann", "token:proxy"], "methods": ["*"])" + limits + "}]}";
  };
  ManualTime time;
  TestServer::Options options = Options(rule(R"(, "calls_per_second": 2)"));
  options.rpc.identity_header = "";
  options.rpc.trusted_proxies.clear();
  options.engine.time = &time;
  options.engine.rates.calls_per_second = 1;
  TestServer server(options);
  const auto channel = Connect(server);
  const auto pushback = [&](const std::string& token, const std::string& field, const std::string& allowed) {
    RawStream stream(channel);
    stream.context.AddMetadata("authorization", "Bearer " + token);
    EXPECT_FALSE(stream.Open(RmseOpen(v1::DTYPE_F32, {10})));
    ExpectError(stream.End(), StatusCode::RESOURCE_EXHAUSTED, "BUSY", field, "*", allowed);
    const auto& trailing = stream.context.GetServerTrailingMetadata();
    const auto found = trailing.find("grpc-retry-pushback-ms");
    return found == trailing.end() ? "" : std::string(found->second.data(), found->second.size());
  };
  for (const char* token : {"ann.right", "proxy.right"})
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(Rmse(channel, token, 10).ok()) << token;
  EXPECT_EQ(pushback("ann.right", "calls a second", "2 (calls_per_second in --policy)"), "500");
  time.Advance(std::chrono::milliseconds(500));
  EXPECT_TRUE(Rmse(channel, "ann.right", 10).ok());

  const auto change = [&](const std::string& text) {
    const int before = server.observer().told("new rules of the policy are used");
    credentials_.files.Write("policy.json", text);
    EXPECT_TRUE(
        Eventually([&] { return server.observer().told("new rules of the policy are used") > before; }));
  };
  change(rule(R"(, "calls_per_second": 10)"));
  EXPECT_EQ(pushback("ann.right", "calls a second", "10 (calls_per_second in --policy)"), "100");
  change(rule(R"(, "calls_per_second": 10, "bytes_per_second": 100)"));
  time.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Rmse(channel, "ann.right", 10).ok());
  EXPECT_EQ(pushback("ann.right", "bytes a second", "100 (bytes_per_second in --policy)"), "760")
      << "twice 2 times 40 bytes and 8, of a bucket of 100";
  change(rule(""));
  EXPECT_TRUE(Rmse(channel, "ann.right", 10).ok());
  EXPECT_EQ(pushback("ann.right", "calls a second", "1 (--calls-per-second-per-identity)"), "1000")
      << "the flag's, where the rule has none";
  time.Advance(std::chrono::seconds(10));
  EXPECT_TRUE(Rmse(channel, "ann.right", 10).ok());
  server.ExpectIdle();
}

TEST_F(PolicyTest, PlacesOfARule) {
  TestServer::Options options = Options(
      R"({"rules": [{"who": ["token:ann"], "methods": ["*"], "max_in_flight": 1, "queue_length": 1},
                    {"who": ["*"], "methods": ["*"]}]})");
  TestServer server(options);
  const auto channel = Connect(server);
  const auto open = [&](RawStream& stream) {
    stream.context.AddMetadata("authorization", "Bearer ann.right");
    return stream.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1 << 18}));
  };
  RawStream running(channel), waiting(channel), refused(channel);
  ASSERT_TRUE(open(running));
  ASSERT_TRUE(server.InFlight(1));
  ASSERT_TRUE(open(waiting));
  EXPECT_TRUE(server.Queued(1));
  EXPECT_FALSE(open(refused));
  ExpectError(refused.End(), StatusCode::RESOURCE_EXHAUSTED, "BUSY", "requests of yours that wait", "1",
              "1 (queue_length in --policy)");
  RawStream other(channel);
  EXPECT_TRUE(other.Open(RmseOpen(v1::DTYPE_F32, {1 << 18}))) << "nobody waits behind her";
  for (RawStream* stream : {&running, &other}) {
    stream->context.TryCancel();
    EXPECT_FALSE(stream->Drain().ok());
  }
  EXPECT_TRUE(server.Queued(0));
  waiting.context.TryCancel();
  EXPECT_FALSE(waiting.Drain().ok());
  server.ExpectIdle();
}

TEST_F(PolicyTest, ProgramsDoNotStartWithOneThatIsWrong) {
  credentials_.files.Write("policy.json", R"({"rules": [{"who": ["*"], "methods": ["Kernels.Fft"]}]})");
  const std::vector<std::string> arguments{"--device",    "cpu",      "--listen",
                                           "127.0.0.1:0", "--policy", credentials_.files.Path("policy.json")};
  Program program(arguments);
  EXPECT_EQ(program.Wait(60), 3);
  EXPECT_NE(program.err().find("rules[0].methods[0]"), std::string::npos) << program.err();

  auto check = arguments;
  check.push_back("--check-config");
  Program wrong(check);
  EXPECT_EQ(wrong.Wait(60), 2);
  EXPECT_NE(wrong.err().find("Kernels.Execute"), std::string::npos) << "what is allowed: " << wrong.err();
  credentials_.files.Write("policy.json",
                           R"({"rules": [{"who": ["*"], "methods": ["*"], "calls_per_second": "many"}]})");
  Program rate(check);
  EXPECT_EQ(rate.Wait(60), 2);
  EXPECT_NE(rate.err().find("rules[0].calls_per_second is \"many\"; allowed: whole numbers, 1 to 1000000"),
            std::string::npos)
      << rate.err();
  credentials_.files.Write("policy.json", kPolicy);
  Program right(check);
  EXPECT_EQ(right.Wait(60), 0) << right.err();
  EXPECT_EQ(right.out(), "tilewired: the configuration is valid\n");
  EXPECT_EQ(right.err(), "tilewired: warning: --policy is " + credentials_.files.Path("policy.json") +
                             ", where rules[1] names token:ann, and --tokens has no such name\n");
  setenv("TILEWIRE_LISTN", "localhost:1", 1);
  Program misspelt(check);
  unsetenv("TILEWIRE_LISTN");
  EXPECT_EQ(misspelt.Wait(60), 0) << misspelt.err();
  EXPECT_NE(misspelt.err().find(
                "unknown environment variable TILEWIRE_LISTN; the nearest known one is TILEWIRE_LISTEN"),
            std::string::npos)
      << misspelt.err();
  Program nobody({"--device", "cpu", "--anonymous", "deny", "--check-config"});
  EXPECT_EQ(nobody.Wait(60), 0);
  EXPECT_NE(nobody.err().find("nobody may call"), std::string::npos) << nobody.err();
}

}  // namespace
}  // namespace tilewire::testing

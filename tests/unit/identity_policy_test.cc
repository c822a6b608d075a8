// Policies: what a file may say, and what is decided by it.
#include "server/rpc/identity/policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {
namespace {

const PolicyWords kWords{
    .methods = {"Kernels.Rmse", "Kernels.Execute", "Arrays.List", "Device.MeasureCeilings"},
    .admin_methods = {"Device.MeasureCeilings"},
    .operations = {"put", "rmse", "transpose"}};

Policy Parsed(const std::string& text) {
  auto policy = Policy::Parse(text, kWords);
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().ToString());
  return policy ? *std::move(policy) : Policy();
}

std::string Complaint(const std::string& text) {
  const auto policy = Policy::Parse(text, kWords);
  return policy ? "" : std::string(policy.error().message());
}

TEST(Policy, TheFirstRuleThatNamesACallerDecides) {
  const Policy policy = Parsed(R"({"rules": [
      {"who": ["token:ann"], "methods": ["Kernels.Rmse"]},
      {"who": ["token:*"], "methods": ["*"]},
      {"who": ["*"], "methods": ["Arrays.List"]}]})");
  EXPECT_EQ(policy.size(), 3u);
  EXPECT_TRUE(policy.For("token:ann").MayCall("Kernels.Rmse").ok());
  EXPECT_FALSE(policy.For("token:ann").MayCall("Arrays.List").ok()) << "later rules give no more";
  EXPECT_TRUE(policy.For("token:bob").MayCall("Kernels.Execute").ok());
  EXPECT_TRUE(policy.For("anonymous").MayCall("Arrays.List").ok());
  EXPECT_FALSE(policy.For("anonymous").MayCall("Kernels.Rmse").ok());
}

TEST(Policy, WhomNobodyNamesMayDoNothing) {
  for (const char* text : {R"({"rules": []})", R"({"rules": [{"who": ["token:ann"], "methods": ["*"]}]})"}) {
    const Policy policy = Parsed(text);
    const Status status = policy.For("token:bob").MayCall("Kernels.Rmse");
    EXPECT_EQ(status.code(), Code::kPermissionDenied);
    EXPECT_EQ(status.reason(), "POLICY");
    EXPECT_FALSE(policy.For("token:bob").MayRun("rmse", 1).ok());
  }
}

TEST(Policy, GroupsStandForTheirMembers) {
  const Policy policy = Parsed(R"({"groups": {"lab": ["token:ann", "jwt:*", "spiffe://example.org/lab/*"]},
      "rules": [{"who": ["lab", "cn:robot"], "methods": ["Kernels.*"]}]})");
  for (const char* who : {"token:ann", "jwt:auth0|1", "spiffe://example.org/lab/a/b", "cn:robot"}) {
    EXPECT_TRUE(policy.For(who).MayCall("Kernels.Execute").ok()) << who;
    EXPECT_FALSE(policy.For(who).MayCall("Arrays.List").ok()) << who;
  }
  for (const char* who : {"token:annie", "dns:ann", "spiffe://example.org/labs", "anonymous"})
    EXPECT_FALSE(policy.For(who).MayCall("Kernels.Execute").ok()) << who;
}

TEST(Policy, DnsNamesAreTheSameInAnyCase) {
  const Policy policy = Parsed(R"({"groups": {"g": ["dns:Two.Example"]}, "rules": [
      {"who": ["dns:One.Example", "g", "dns:Three*"], "methods": ["Kernels.Rmse"]},
      {"who": ["*"], "methods": ["*"]}]})");
  for (const char* who : {"dns:one.example", "dns:two.example", "dns:three.example"})
    EXPECT_FALSE(policy.For(who).MayCall("Kernels.Execute").ok()) << who;
  EXPECT_TRUE(policy.For("dns:four.example").MayCall("Kernels.Execute").ok());
  const Policy below = Parsed(R"({"rules": [{"who": ["dns:*.example"], "methods": ["Kernels.Rmse"]}]})");
  EXPECT_TRUE(below.For("dns:*.example").MayCall("Kernels.Rmse").ok()) << "so is a certificate's name";
  EXPECT_FALSE(below.For("dns:one.example").MayCall("Kernels.Rmse").ok());
}

TEST(Policy, AdministrationIsNotInTheStar) {
  const Policy policy = Parsed(R"({"rules": [{"who": ["token:root"], "methods": ["*"], "admin": true},
      {"who": ["*"], "methods": ["*", "Device.MeasureCeilings"]}]})");
  EXPECT_TRUE(policy.For("token:root").MayCall("Device.MeasureCeilings").ok());
  EXPECT_EQ(policy.For("token:ann").MayCall("Device.MeasureCeilings").detail()->allowed,
            "callers whose rule says \"admin\": true");
  EXPECT_EQ(policy.For("token:ann").MayCall("Device.Measure").detail()->allowed,
            "what the rule for this caller lists");
  EXPECT_TRUE(policy.For("token:ann").MayCall("Kernels.Rmse").ok());
}

TEST(Policy, OperationsAndTheirSizesAreBounded) {
  const Policy policy = Parsed(R"({"rules": [
      {"who": ["token:ann"], "methods": ["*"], "operations": ["rmse"], "max_bytes": "1MiB"},
      {"who": ["*"], "methods": ["*"]}]})");
  EXPECT_TRUE(policy.For("token:ann").MayRun("rmse", 1 << 20).ok());
  const Status large = policy.For("token:ann").MayRun("rmse", (1 << 20) + 1);
  EXPECT_EQ(large.code(), Code::kPermissionDenied);
  EXPECT_EQ(large.detail()->field, "bytes");
  EXPECT_EQ(
      large.message(),
      "token:ann may not run rmse on more than 1048576 bytes of operands and results (max_bytes), and these "
      "are 1048577, by the server's --policy");
  EXPECT_EQ(policy.For("token:ann").MayRun("put", 1).detail()->field, "operation");
  EXPECT_TRUE(policy.For("token:bob").MayRun("put", int64_t{1} << 40).ok())
      << "a rule without bounds has none";
}

TEST(Policy, LimitsAreThoseOfTheRuleThatDecides) {
  const Policy policy = Parsed(R"({"rules": [
      {"who": ["token:ann"], "methods": ["*"], "calls_per_second": 5, "bytes_per_second": "2MiB",
       "max_in_flight": 3, "queue_length": 1000000, "device_bytes": "1GiB", "streams": 4, "arrays": 5,
       "array_bytes": 6, "regions": 7, "region_bytes": "8KiB"},
      {"who": ["token:*"], "methods": ["*"], "calls_per_second": 7}]})");
  const PolicyLimits ann = policy.For("token:ann").limits(), bob = policy.For("token:bob").limits();
  EXPECT_EQ(ann.calls_per_second, 5);
  EXPECT_EQ(ann.bytes_per_second, 2 << 20);
  EXPECT_EQ(ann.max_in_flight, 3);
  EXPECT_EQ(ann.queue_length, 1'000'000);
  EXPECT_EQ(ann.device_bytes, 1 << 30);
  EXPECT_EQ(ann.streams, 4);
  EXPECT_EQ(ann.arrays, 5);
  EXPECT_EQ(ann.array_bytes, 6);
  EXPECT_EQ(ann.regions, 7);
  EXPECT_EQ(ann.region_bytes, 8 << 10);
  EXPECT_EQ(bob.streams + bob.arrays + bob.regions + bob.device_bytes, 0);
  EXPECT_EQ(bob.calls_per_second, 7);
  EXPECT_EQ(bob.bytes_per_second, 0) << "what a rule does not say the flags do";
  EXPECT_EQ(policy.For("anonymous").limits().calls_per_second, 0);
}

TEST(Policy, WhatIsWrongIsSaidWhereItIs) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "line 1 is no JSON"},
      {"{\"rules\": [\n,]}", "line 2 is no JSON"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_bytes": 1e999}]})", "a number is out of range"},
      {"[]", "the policy is []; allowed: an object"},
      {"{}", "rules is missing; allowed: a list of rules"},
      {R"({"rules": {}})", "rules is {}; allowed: a list of rules"},
      {R"({"rule": []})", "the policy.rule is an unknown key; allowed: groups, rules"},
      {R"({"rules": [], "rules": []})", "the key \"rules\" is there twice in one object"},
      {R"({"rules": [3]})", "rules[0] is 3; allowed: an object"},
      {R"({"rules": [{"methods": ["*"]}]})",
       "rules[0].who is missing; allowed: a list of identities and groups"},
      {R"({"rules": [{"who": "*", "methods": ["*"]}]})",
       "rules[0].who is \"*\"; allowed: a list of texts, 1 or more"},
      {R"({"rules": [{"who": ["ann"], "methods": ["*"]}]})",
       "rules[0].who[0] is \"ann\"; allowed: *, anonymous"},
      {R"({"rules": [{"who": ["spiffe://*/ann"], "methods": ["*"]}]})",
       "rules[0].who[0] is \"spiffe://*/ann\"; allowed: *, anonymous"},
      {R"({"rules": [{"who": ["*"]}]})", "rules[0].methods is missing"},
      {R"({"rules": [{"who": ["*"], "methods": ["Rmse"]}]})",
       "rules[0].methods[0] is \"Rmse\"; allowed: *, Kernels.Rmse, Kernels.Execute, Arrays.List"},
      {R"({"rules": [{"who": ["*"], "methods": ["*", 1]}]})", "rules[0].methods[1] is 1; allowed: a text"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "operations": ["fft"]}]})",
       "rules[0].operations[0] is \"fft\"; allowed: *, put, rmse, transpose"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_bytes": "1 MB"}]})",
       "rules[0].max_bytes is \"1 MB\""},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_bytes": 0}]})", "rules[0].max_bytes is 0"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_bytes": 18446744073709551615}]})",
       "rules[0].max_bytes is 18446744073709551615; allowed: bytes, 1 to 16384GiB"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_bytes": "16385GiB"}]})",
       "rules[0].max_bytes is \"16385GiB\""},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_bytes": "17592186044416GiB"}]})",
       "rules[0].max_bytes is \"17592186044416GiB\""},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "admin": 1}]})",
       "rules[0].admin is 1; allowed: true or false"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "calls_per_second": 0}]})",
       "rules[0].calls_per_second is 0; allowed: whole numbers, 1 to 1000000"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "calls_per_second": 2.5}]})",
       "rules[0].calls_per_second is 2.5; allowed: whole numbers, 1 to 1000000"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "bytes_per_second": -1}]})",
       "rules[0].bytes_per_second is -1; allowed: bytes, 1 to 16384GiB"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "max_in_flight": "3"}]})",
       "rules[0].max_in_flight is \"3\"; allowed: whole numbers"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "queue_length": 1000001}]})",
       "rules[0].queue_length is 1000001; allowed: whole numbers"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "streams": "4"}]})",
       "rules[0].streams is \"4\"; allowed: whole numbers"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "device_bytes": 0}]})", "rules[0].device_bytes is 0"},
      {R"({"rules": [{"who": ["*"], "methods": ["*"], "limits": {}}]})", "rules[0].limits is an unknown key"},
      {R"({"groups": {"a:b": ["*"]}, "rules": []})",
       "groups is \"a:b\"; allowed: names that are no identities"},
      {R"({"groups": {"a": []}, "rules": []})", "groups.a is []; allowed: a list of texts, 1 or more"}};
  for (const auto& [text, complaint] : kWrong)
    EXPECT_EQ(Complaint(text).substr(0, std::string(complaint).size()), complaint)
        << text << ": " << Complaint(text);
}

TEST(Policy, WhatCannotBeMeantIsDoubted) {
  const std::string line = "ann 0123456789abcdef " + std::string(64, 'a');
  const Tokens tokens = Tokens::Parse(line).value();
  using Doubts = std::vector<std::string>;
  EXPECT_EQ(Parsed(R"({"rules": []})").Doubts(&tokens),
            Doubts{"there are no rules, so that nobody may do anything"});
  const Policy policy = Parsed(R"({"groups": {"lab": ["token:ann", "cn:a*"]}, "rules": [
      {"who": ["token:ann", "token:b*", "token:eve"], "methods": ["*"]},
      {"who": ["lab", "token:bob"], "methods": ["*"]},
      {"who": ["cn:ab*", "cn:b*"], "methods": ["*"]},
      {"who": ["*"], "methods": ["*"]},
      {"who": ["anonymous"], "methods": ["*"]}]})");
  EXPECT_EQ(policy.Doubts(&tokens), (Doubts{"rules[0] names token:eve, and --tokens has no such name",
                                            "rules[1] names token:ann, for whom rules[0] counts",
                                            "rules[1] names token:bob, for whom rules[0] counts",
                                            "rules[1] names token:bob, and --tokens has no such name",
                                            "rules[2] names cn:ab*, for whom rules[1] counts",
                                            "rules[4] names anonymous, for whom rules[3] counts"}));
  EXPECT_EQ(Parsed(R"({"rules": [{"who": ["uid:0"], "methods": ["*"]}]})").Doubts(nullptr),
            Doubts{"rules[0] names uid:0, and users behind unix sockets are not known"});
  EXPECT_EQ(Parsed(R"({"rules": [{"who": ["token:ann"], "methods": ["*"]}]})").Doubts(nullptr),
            Doubts{"rules[0] names token:ann, and --tokens has no such name"});
  EXPECT_EQ(Parsed(R"({"rules": [{"who": ["token:ann", "cn:b"], "methods": ["*"]},
                                 {"who": ["cn:*", "token:*", "token:ann*"], "methods": ["*"]}]})")
                .Doubts(&tokens),
            Doubts{});
}

TEST(Policy, NoTextIsMoreThanAComplaint) {
  const std::string good =
      R"({"groups": {"g": ["*"]}, "rules": [{"who": ["g"], "methods": ["*"], "max_bytes": "1GiB"}]})";
  ASSERT_EQ(Complaint(good), "");
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char c : {'\0', '"', '{', ']', '9', '\xff'}) {
      std::string bad = good;
      bad[i] = c;
      (void)Complaint(bad);
    }
    EXPECT_NE(Complaint(good.substr(0, i)), "");
  }
}

}  // namespace
}  // namespace tilewire::rpc

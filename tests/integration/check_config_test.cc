// --check-config finds what a start would, of files and who may read them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/integration/program.h"
#include "tests/unit/certificates.h"

namespace tilewire::testing {
namespace {

TEST(CheckConfig, FindsThatThereIsNoSuchUser) {
  Program checks({"--device", "cpu", "--user", "tilewire-nobody-has-this-name", "--check-config"});
  EXPECT_EQ(checks.Wait(60), 2);
  EXPECT_NE(checks.err().find("--user is tilewire-nobody-has-this-name"), std::string::npos) << checks.err();
}

TEST(CheckConfig, ReadsAsTheUserWhomTheServerBecomes) {
  Program may({"--device", "cpu", "--user", "1234:4321", "--check-config"});
  ASSERT_EQ(may.Wait(60), 0) << may.err();
  if (may.err().find("you cannot start it so") != std::string::npos) GTEST_SKIP() << may.err();
  using std::filesystem::perms;
  const Files files;
  const std::filesystem::path policy =
      files.Write("policy.json", R"({"rules": [{"who": ["*"], "methods": ["*"]}]})");
  std::filesystem::permissions(policy.parent_path(), perms::others_read | perms::others_exec,
                               std::filesystem::perm_options::add);
  const auto check = [&](perms permissions, int code) {
    std::filesystem::permissions(policy, permissions);
    Program checks({"--device", "cpu", "--policy", policy, "--user", "1234:4321", "--check-config"});
    EXPECT_EQ(checks.Wait(60), code) << checks.err();
    return checks.err();
  };
  check(perms::owner_read | perms::others_read, 0);
  const std::string why = check(perms::owner_read, 2);
  EXPECT_NE(why.find("cannot be read: Permission denied"), std::string::npos) << why;
}

/// And what is wrong with files that change later is in the metrics.
TEST(CheckConfig, AFileThatCannotBeUsedIsCountedWhileItIsThere) {
  constexpr const char* kGood = R"({"rules": [{"who": ["*"], "methods": ["*"]}]})";
  const Files files;
  const std::string policy = files.Write("policy.json", kGood), key = "tilewire_credential_files_refused ";
  Program program(
      {"--device", "cpu", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--policy", policy});
  program.Ready();
  const std::string metrics = program.MetricsAddress();
  const auto shows = [&](const char* count) {
    return HttpGet(metrics, "/metrics").find("\n" + key + count + "\n") != std::string::npos;
  };
  EXPECT_TRUE(shows("0"));
  EXPECT_EQ(HttpGet(metrics, "/metrics").find("tilewire_certificate_expiry"), std::string::npos)
      << "in clear";
  files.Write("policy.json", "{");
  EXPECT_TRUE(Eventually([&] { return shows("1"); }));
  files.Write("policy.json", kGood);
  EXPECT_TRUE(Eventually([&] { return shows("0"); }));
}

}  // namespace
}  // namespace tilewire::testing

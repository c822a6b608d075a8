// --check-config finds what a start would, of files and who may read them.
#include <gtest/gtest.h>
#include <unistd.h>

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
  if (geteuid() != 0) GTEST_SKIP() << "not root";
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

}  // namespace
}  // namespace tilewire::testing

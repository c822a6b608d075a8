// The command line of tilewired, parsed in this process, with variables and a file that are the test's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/ops/config.h"
#include "server/ops/flags.h"

namespace tilewire::ops {

using Strings = std::vector<std::string>;
struct Said {
  ParseOutcome outcome;
  std::string out, err;
};

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilewire-config-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    for (const Flag& flag : Flags()) unsetenv(flag.env().c_str());
    unsetenv("TILEWIRE_CONFIG");
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
    std::filesystem::remove_all(dir_);
  }
  void Env(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  std::string File(const std::string& text) {
    const std::string path = (dir_ / "tilewired.toml").string();
    std::ofstream(path) << text;
    return path;
  }
  static Said Parse(const Strings& args) {
    std::vector<const char*> argv{"tilewired"};
    for (const std::string& arg : args) argv.push_back(arg.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Said said{ParseCommandLine(static_cast<int>(argv.size()), argv.data()), "", ""};
    said.out = ::testing::internal::GetCapturedStdout();
    said.err = ::testing::internal::GetCapturedStderr();
    return said;
  }
  static Config Good(const Strings& args) {
    Said said = Parse(args);
    EXPECT_TRUE(said.outcome.config) << said.err;
    EXPECT_EQ(said.out + said.err, "");
    return said.outcome.config.value_or(Config());
  }
  /// Exit code 2, nothing on stdout, and a message that holds `parts`.
  static void Bad(const Strings& args, const Strings& parts) {
    Said said = Parse(args);
    EXPECT_FALSE(said.outcome.config);
    EXPECT_EQ(said.outcome.exit_code, 2);
    EXPECT_EQ(said.out, "");
    for (const std::string& part : parts)
      EXPECT_NE(said.err.find(part), std::string::npos) << "no `" << part << "` in: " << said.err;
  }
  std::filesystem::path dir_;
  Strings set_;
};

}  // namespace tilewire::ops

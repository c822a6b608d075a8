// The command line, the environment and the file together: precedence, errors, help, and that the README
// tells it.
#include "server/ops/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/ops/flags.h"
#include "server/ops/version.h"
#include "tests/unit/ops_config_fixture.h"

namespace tilewire::ops {
namespace {
TEST_F(ConfigTest, DefaultsAreTheDocumentedOnes) {
  const Config config = Good({});
  EXPECT_EQ(config.listen, Strings{"localhost:50051"});
  EXPECT_EQ(config.device, "auto");
  EXPECT_EQ(config.lanes, 4);
  EXPECT_EQ(config.block_bytes, 4 * kMiB);
  EXPECT_TRUE(config.overlap);
  EXPECT_EQ(config.pinned_bytes, 0);
  EXPECT_EQ(config.device_bytes, 0);
  EXPECT_EQ(config.max_in_flight, 64);
  EXPECT_EQ(config.queue_length, 256);
  EXPECT_EQ(config.queue_seconds, 10);
  EXPECT_EQ(config.idle_seconds, 30);
  EXPECT_EQ(config.receive_quota, 192 * kMiB);
  EXPECT_EQ(config.receive_window, 128 * kKiB);
  EXPECT_TRUE(config.fit_windows);
  EXPECT_EQ(config.distance_bytes, 0);
  EXPECT_EQ(config.drain_seconds, 30);
  EXPECT_EQ(config.metrics_listen + config.identity_header, "");
  EXPECT_FALSE(config.reflection);
  EXPECT_EQ(config.log_format, "text");
  EXPECT_EQ(config.log_level, "info");
}

TEST_F(ConfigTest, EveryFlagArrives) {
  const Config config = Good({"--listen",
                              "0.0.0.0:0",
                              "--listen=unix:/run/t.sock",
                              "--insecure",
                              "--advertise",
                              "h:1",
                              "--device",
                              "cuda:1",
                              "--lanes",
                              "8",
                              "--block-bytes",
                              "1MiB",
                              "--no-overlap",
                              "--pinned-bytes",
                              "2GiB",
                              "--device-bytes",
                              "10GiB",
                              "--max-in-flight",
                              "7",
                              "--queue-length",
                              "0",
                              "--queue-seconds",
                              "0.5",
                              "--idle-seconds",
                              "1.5",
                              "--receive-quota",
                              "32MiB",
                              "--receive-window",
                              "0",
                              "--distance-bytes",
                              "64MiB",
                              "--metrics-listen",
                              "[::1]:9090",
                              "--reflection",
                              "--identity-header",
                              "X-User",
                              "--drain-seconds",
                              "0",
                              "--log-format",
                              "json",
                              "--log-level",
                              "warn"});
  EXPECT_EQ(config.listen, (Strings{"0.0.0.0:0", "unix:/run/t.sock"}));
  EXPECT_EQ(config.advertise, Strings{"h:1"});
  EXPECT_EQ(config.device, "cuda:1");
  EXPECT_EQ(config.lanes, 8);
  EXPECT_EQ(config.block_bytes, kMiB);
  EXPECT_FALSE(config.overlap);
  EXPECT_EQ(config.pinned_bytes, 2 * kGiB);
  EXPECT_EQ(config.device_bytes, 10 * kGiB);
  EXPECT_EQ(config.max_in_flight, 7);
  EXPECT_EQ(config.queue_length, 0);
  EXPECT_EQ(config.queue_seconds, 0.5);
  EXPECT_EQ(config.idle_seconds, 1.5);
  EXPECT_EQ(config.receive_quota, 32 * kMiB);
  EXPECT_EQ(config.receive_window, 0);
  EXPECT_FALSE(config.fit_windows) << "one window for all where it is given";
  EXPECT_EQ(config.distance_bytes, 64 * kMiB);
  EXPECT_EQ(config.metrics_listen, "[::1]:9090");
  EXPECT_TRUE(config.reflection);
  EXPECT_EQ(config.identity_header, "x-user");
  EXPECT_EQ(config.drain_seconds, 0);
  EXPECT_EQ(config.log_format, "json");
  EXPECT_EQ(config.log_level, "warn");
}

TEST_F(ConfigTest, CheckConfigLeavesTheRestToWhoReadsFiles) {
  const Said said = Parse({"--check-config", "--config", File("lanes = 2\n")});
  EXPECT_EQ(said.out + said.err, "");
  EXPECT_TRUE(said.outcome.config);
  EXPECT_TRUE(said.outcome.check_only);
  Bad({"--check-config", "--config", File("lanes = 0\n")}, {"--lanes is 0"});
}

TEST_F(ConfigTest, FlagWinsOverEnvironmentOverFileOverDefault) {
  const std::string file =
      File("lanes = 1\nqueue-length = 1\n# a comment\nlisten = [\"localhost:1\", \"localhost:2\"]\n");
  Env("TILEWIRE_LANES", "2");
  Env("TILEWIRE_QUEUE_LENGTH", "2");
  Env("TILEWIRE_MAX_IN_FLIGHT", "2");
  const Config config = Good({"--config", file, "--lanes", "3"});
  EXPECT_EQ(config.lanes, 3);
  EXPECT_EQ(config.queue_length, 2);
  EXPECT_EQ(config.max_in_flight, 2);
  EXPECT_EQ(config.listen, (Strings{"localhost:1", "localhost:2"}));
  EXPECT_EQ(config.block_bytes, 4 * kMiB);
}

TEST_F(ConfigTest, RepeatableFlagsReplaceWeakerSourcesWhole) {
  const std::string file = File("listen = [\"localhost:1\", \"localhost:2\"]\n");
  Env("TILEWIRE_LISTEN", "127.0.0.1:1,[::1]:2");
  EXPECT_EQ(Good({"--config", file}).listen, (Strings{"127.0.0.1:1", "[::1]:2"}));
  EXPECT_EQ(Good({"--config", file, "--listen", "unix:/c"}).listen, Strings{"unix:/c"});
}

TEST_F(ConfigTest, EmptyVariablesCountAsUnset) {
  Env("TILEWIRE_LANES", "");
  Env("TILEWIRE_CONFIG", "");
  EXPECT_EQ(Good({}).lanes, 4);
}

TEST_F(ConfigTest, FileMayBeNamedByTheEnvironmentAndSetSwitches) {
  Env("TILEWIRE_CONFIG",
      File("reflection = true\nno-overlap = true\nblock-bytes = \"8 MiB\"\nlog-level = \"debug\"\n"));
  const Config config = Good({});
  EXPECT_TRUE(config.reflection);
  EXPECT_FALSE(config.overlap);
  EXPECT_EQ(config.block_bytes, 8 * kMiB);
  EXPECT_EQ(config.log_level, "debug");
}

TEST_F(ConfigTest, SwitchesCanBeTurnedBack) {
  Env("TILEWIRE_REFLECTION", "yes");
  Env("TILEWIRE_NO_OVERLAP", "0");
  EXPECT_TRUE(Good({}).reflection);
  EXPECT_TRUE(Good({}).overlap);
  EXPECT_FALSE(Good({"--reflection=false"}).reflection);
}

TEST_F(ConfigTest, WrongValuesNameFlagValueAllowedAndSource) {
  Bad({"--lanes", "0"}, {"--lanes is 0; allowed: a whole number from 1 to 64", "the command line"});
  Env("TILEWIRE_LANES", "65");
  Bad({}, {"--lanes is 65", "1 to 64", "TILEWIRE_LANES"});
  EXPECT_EQ(Good({"--lanes", "3"}).lanes, 3);
  unsetenv("TILEWIRE_LANES");
  const std::string file = File("lanes = many\n");
  Bad({"--config", file}, {"--lanes is many", file});
  Bad({"--config", file, "--lanes", "3"}, {"--lanes is many", file});
}

TEST_F(ConfigTest, EveryFlagRefusesNonsense) {
  for (const Flag& flag : Flags()) {
    const std::string name = "--" + flag.name;
    Bad({name + "=non sense"}, {name + " is non sense; allowed: "});
  }
}

TEST_F(ConfigTest, TheAuditLogIsAFileInAFolderThatIsThere) {
  for (const std::string& path : {dir_.string(), (dir_ / "absent" / "audit").string(), std::string("audit")})
    Bad({"--audit-log", path}, {"--audit-log is " + path + "; allowed: an absolute path"});
  EXPECT_EQ(Good({"--audit-log", (dir_ / "audit").string()}).audit_log, (dir_ / "audit").string());
}

TEST_F(ConfigTest, UnknownThingsAreErrors) {
  Bad({"--lane", "3"}, {"--lane"});
  Bad({"serve"}, {"serve"});
  Bad({"--lanes"}, {"--lanes"});
  Bad({"--allow-regions", "x"}, {"--allow-regions"});
  for (const char* text : {"lane = 3\n", "config = \"x\"\n", "version = true\n", "[server]\nlanes = 3\n",
                           "garbage\n", "server.lanes = 3\n"}) {
    Bad({"--config", File(text)}, {"unknown key"});
  }
}

TEST_F(ConfigTest, FilesThatCannotBeReadAreErrors) {
  Bad({"--config", (dir_ / "absent").string()}, {"absent", "--config"});
  Bad({"--config", dir_.string()}, {"cannot be read", "directory"});
  Bad({"--config", "/proc/self/mem"}, {"/proc/self/mem, which cannot be read"});  // opens, and then fails
  Env("TILEWIRE_CONFIG", (dir_ / "absent").string());
  Bad({}, {"absent"});
}

TEST_F(ConfigTest, SecondValuesAreErrorsWhereOneIsMeant) {
  Bad({"--lanes", "3", "--lanes", "4"}, {"--lanes is given 2 values"});
  Bad({"--config", File("lanes = 3\nqueue-length = 1\nlanes = 4\n")}, {"--lanes is given 2 values"});
  Bad({"--listen", "localhost:1", "--listen", "localhost:1"},
      {"--listen is localhost:1; allowed: each address once"});
  EXPECT_EQ(Good({"--listen", "localhost:0", "--listen", "localhost:0"}).listen.size(), 2u);
}

TEST_F(ConfigTest, RelationsBetweenFlags) {
  Bad({"--block-bytes", "5000"}, {"--block-bytes is 5000", "a multiple of 4KiB"});
  Bad({"--pinned-bytes", "15MiB"}, {"--pinned-bytes is 15MiB", "16MiB"});
  EXPECT_EQ(Good({"--pinned-bytes", "16MiB"}).pinned_bytes, 16 * kMiB);
  Bad({"--pinned-bytes", "16MiB", "--block-bytes", "8MiB"}, {"--pinned-bytes"});
}

TEST_F(ConfigTest, MakesTokensAndNothingElse) {
  const Said said = Parse({"--make-token", "ann", "--expires", "2099-01-31T12:00:00Z"});
  EXPECT_TRUE(!said.outcome.config && said.outcome.exit_code == 0);
  EXPECT_EQ(said.out.find("ann "), 0u);
  EXPECT_NE(said.out.find(" 2099-01-31T12:00:00Z\n"), std::string::npos) << said.out;
  EXPECT_TRUE(said.err.starts_with("ann.") && said.err.find('\n') == said.err.size() - 1) << "it alone";
  Bad({"--make-token", "a b"}, {"--make-token: "});
  Bad({"--make-token", "ann", "--expires", "never"}, {"2027"});
  Bad({"--expires", "2099-01-31T12:00:00Z"}, {"--make-token"});
}

TEST_F(ConfigTest, HelpNamesEveryFlagItsVariableAndItsDefault) {
  Said said = Parse({"--help"});
  EXPECT_FALSE(said.outcome.config);
  EXPECT_EQ(said.outcome.exit_code, 0);
  EXPECT_EQ(said.err, "");
  for (const Flag& flag : Flags()) {
    EXPECT_NE(said.out.find("--" + flag.name), std::string::npos) << flag.name;
    EXPECT_NE(said.out.find("[" + flag.env() + "]"), std::string::npos) << flag.name;
    EXPECT_NE(said.out.find("Allowed: " + flag.allowed + ". Default: " + flag.default_text + "."),
              std::string::npos)
        << flag.name;
  }
}

TEST_F(ConfigTest, VersionSaysWhatWasBuilt) {
  Said said = Parse({"--version"});
  EXPECT_FALSE(said.outcome.config);
  EXPECT_EQ(said.outcome.exit_code, 0);
  EXPECT_EQ(said.out.find("tilewired " + std::string(Version()) + "\nCUDA: "), 0u) << said.out;
}

TEST_F(ConfigTest, HelpIsGivenEvenWhereOtherThingsAreWrong) {
  Env("TILEWIRE_LANES", "0");
  EXPECT_EQ(Parse({"--help"}).outcome.exit_code, 0);
}
}  // namespace
}  // namespace tilewire::ops

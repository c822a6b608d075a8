// The program: what it says to command lines that are wrong.
#include "client/cpp/operations.h"
#include "tests/unit/client_cli_testing.h"

namespace tilewire::client {
namespace {

using testing::Cli;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Program;
using testing::Ran;
using ::testing::StartsWith;

TEST_F(Cli, UsageAndFilesExitWith2) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"frobnicate"},
                                             {"rmse", A()},
                                             {"rmse", A(), B(), "--axis", "1,"},
                                             {"rmse", A(), B(), "--axis", "x"},
                                             {"rmse", A(), B(), "--output", "max"},
                                             {"--timeout", "-1", "ping"},
                                             {"--timeout", "abc", "ping"},
                                             {"ping", "-n", "0"},
                                             {"rmse", A(), B(), "extra"},
                                             {"rmse", A(), B(), "--spans", "x"}}) {
    EXPECT_EQ(Run(arguments).exit_code, 2) << ::testing::PrintToString(arguments);
  }
  testing::WriteFile(dir_.File("text.npy"), "hello");
  const Ran text = Run({"rmse", A(), dir_.File("text.npy")});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("text.npy: is no .npy file"));
  EXPECT_EQ(Run({"rmse", dir_.File("none.npy"), B()}).exit_code, 2);
  EXPECT_EQ(Run({"transpose", A(), "/nowhere/t.npy"}).exit_code, 2);
  EXPECT_EQ(Run({"transpose", A(), "/dev/null"}).exit_code, 2);
  EXPECT_EQ(Run({"rmse", A(), B(), "--out", dir_.path()}).exit_code, 2);
  EXPECT_EQ(server_.log().calls + server_.log().streams, 0);
  EXPECT_EQ(Run({"--help"}).exit_code, 0);
  EXPECT_EQ(Run({"--version"}).out, "tilewire 0.1.0\n");
}

TEST_F(Cli, UsageErrorsNameTheWrongWord) {
  const std::string commands = "; commands: " + CommandNames() + ", put, get, ls, rm, info, ping, selftest\n";
  EXPECT_THAT(commands, StartsWith("; commands: rmse, transpose, gaussian-pdf, compare, "));
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{}, "a command is missing" + commands},
      {{"foo"}, "'foo' is no command" + commands},
      {{"convolve", A(), "--sigma", "1"}, "'convolve' is no command; commands: rmse, "},
      {{"--bogus"}, "'--bogus' is no option; commands: rmse, "},
      {{"rmse", "--bogus"}, "'--bogus' is no option\n"},
      {{"rmse", A(), B(), "--spans", "x"}, "'--spans' is no option\n"},
      {{"rmse", A()}, "B is required\n"},
      {{"compare", A(), B(), "--out", dir_.File("c.npy")},
       "--out: results with names have no .npy file of their own"},
      {{"rmse", A(), B(), "--axis", ""}, "--axis: is empty"},
      {{"transpose", A(), dir_.File("t.npy"), "--axes", ""}, "--axes: is empty"},
      {{"--timeout", "abc", "ping"}, "--timeout: 'abc' is not a number\n"},
      {{"--timeout", "1s", "ping"}, "--timeout: '1s' is not a number\n"},
      {{"--timeout", "nan", "ping"}, "--timeout: 'nan' is out of range; allowed: 0.001 to 1e9 seconds\n"},
      {{"--timeout", "0", "ping"}, "--timeout: '0' is out of range; allowed: 0.001 to 1e9 seconds\n"},
  };
  for (const auto& [arguments, says] : cases) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_THAT(ran.err, StartsWith(says)) << ::testing::PrintToString(arguments);
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_EQ(server_.log().calls + server_.log().streams, 0);
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("Usage: tilewire [OPTIONS]"));
  EXPECT_THAT(Run({"rmse", "--help"}).out, HasSubstr("Usage: tilewire rmse [OPTIONS]"));
}

TEST_F(Cli, AxisAndAxesAreOneOptionWhereverOneOfThemIs) {
  const std::string t = dir_.File("t.npy");
  const struct {
    std::vector<std::string> command;
    std::string name, axes, help;
  } cases[] = {{{"rmse", A(), B()}, "--axis", "1", "--axis,--axes"},
               {{"transpose", A(), t}, "--axes", "0,1", "--axes,--axis"},
               {{"info", "--kernels", "rmse", "--shape", "3,4"}, "--axes", "1", "--axes,--axis"}};
  for (const auto& [command, name, axes, help] : cases) {
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), command.begin(), command.end());
      const Ran ran = Run(more);
      return command[0] == "transpose" && ran.exit_code == 0 ? Ran{0, testing::ReadFile(t), ran.err} : ran;
    };
    const Ran plain = with({}), axis = with({"--axis", axes}), both = with({"--axes", axes});
    EXPECT_EQ(axis.exit_code, 0) << axis.err;
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_EQ(axis.out, both.out);
    // The fake describes the same kernels whatever it is asked for.
    if (command[0] != "info") {
      EXPECT_NE(axis.out, plain.out) << "the axes count";
    }
    for (const char* second : {"--axis", "--axes"}) {
      const Ran twice = with({"--axis", axes, second, axes});
      EXPECT_EQ(twice.exit_code, 2) << command[0];
      EXPECT_THAT(twice.err, StartsWith(name + ": is given 2 times; allowed: once, as --axis or --axes\n"));
    }
    EXPECT_THAT(Run({command[0], "--help"}).out, HasSubstr(help)) << "help names one and mentions the other";
  }
}

TEST_F(Cli, AddressesAreCheckedBeforeTheyAreDialled) {
  for (const std::string address :
       {"", "localhost", "localhost:", "localhost:0", "localhost:99999", "localhost:4294967297",
        "localhost:-1", "localhost:80x", ":50051", "::1:50051", "[::1]", "[::1]:0", "[localhost]:50051",
        "unix:", "http://host:80"}) {
    const std::string problem = address.empty() ? "is empty" : "'" + address + "' is no address";
    const std::string allowed =
        problem + "; allowed: host:port, [IPv6]:port with a port of 1 to 65535, or unix:PATH\n";
    const Ran option = Run({"--server", address, "ping"});
    EXPECT_EQ(option.exit_code, 2) << address;
    EXPECT_THAT(option.err, StartsWith("--server: " + allowed));
    const Ran variable = Program(TILEWIRE_CLI, {"ping"}, address).Wait();
    EXPECT_EQ(variable.exit_code, 2) << address;
    EXPECT_THAT(variable.err, StartsWith("--server (from TILEWIRE_SERVER): " + allowed));
  }
  // An option outdoes a wrong variable, and help needs no server.
  EXPECT_EQ(Program(TILEWIRE_CLI, {"--server", server_.address(), "ping", "-n", "1"}, "x").Wait().exit_code,
            0);
  EXPECT_EQ(Program(TILEWIRE_CLI, {"--help"}, "x").Wait().exit_code, 0);
  const std::string port = std::to_string(server_.port());
  EXPECT_EQ(Run({"--server", "localhost:" + port, "ping", "-n", "1"}).exit_code, 0);
  for (const std::string& nobody : {std::string("[::1]:1"), "unix:" + dir_.File("none.sock")})
    EXPECT_EQ(Run({"--server", nobody, "--timeout", "5", "ping", "-n", "1"}).exit_code, 1) << nobody;
}

TEST_F(Cli, UnknownVariablesAreToldOnStderrAlone) {
  const auto run = [&](const std::string& setting, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {setting, TILEWIRE_CLI});
    return Program("/usr/bin/env", arguments, server_.address()).Wait();
  };
  const Ran plain = Run({"rmse", A(), B()}), misspelt = run("TILEWIRE_SERVR=h:1", {"rmse", A(), B()});
  EXPECT_EQ(misspelt.exit_code, 0);
  EXPECT_EQ(misspelt.out, plain.out);
  EXPECT_EQ(
      misspelt.err,
      "warning: unknown environment variable TILEWIRE_SERVR; the nearest known one is TILEWIRE_SERVER\n");
  EXPECT_EQ(run("TILEWIRE_LANES=8", {"rmse", A(), B()}).err, "") << "the server's is no mistake";
  EXPECT_EQ(run("TILEWIRE_SERVR=h:1", {"--help"}).err, "");
}

}  // namespace
}  // namespace tilewire::client

// The program and what would stop it that has nothing to do with calls: logs that nobody reads, signals,
// threads.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/integration/doors.h"
#include "tests/integration/program.h"
#include "tests/integration/tls.h"

namespace tilewire::testing {
namespace {

const std::vector<std::string> kServe{"--device",       "cpu",  "--listen", "127.0.0.1:0",
                                      "--device-bytes", "64MiB"};

/// A tilewired started by a shell's words, which end with `exec "$0" "$@"` and what is redirected.
std::vector<std::string> ByShell(const std::string& words, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"-c", words, TILEWIRE_TILEWIRED};
  arguments.insert(arguments.end(), kServe.begin(), kServe.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

bool Describes(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::DescribeResponse response;
  return v1::Device::NewStub(channel)->Describe(&context, {}, &response).ok();
}

/// A client that knows no TLS: says something, and waits until the server has had enough of it.
void SpeakInClear(const std::string& address) {
  const auto fd = Connect(address);
  constexpr std::string_view kWords = "GET / HTTP/1.1\r\nHost: tilewire\r\n\r\n";
  EXPECT_EQ(send(fd.get(), kWords.data(), kWords.size(), MSG_NOSIGNAL), static_cast<ssize_t>(kWords.size()));
  while (!IsClosed(fd)) {
  }
}

/// D6: stderr is a full pipe that nobody reads.
TEST(Logs, APipeThatNobodyReadsStopsNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const std::string fill(4096, '\n');
  while (write(ends[1], fill.data(), fill.size()) > 0) {
  }
  // Opened anew, so that writes to it wait, as a pipe of a shell makes them. (Descriptors of two digits
  // cannot be named otherwise in dash.)
  Program program("/bin/sh", ByShell("exec \"$0\" \"$@\" 2>/dev/fd/" + std::to_string(Program::kInherited)),
                  ends[1]);
  const auto channel = ConnectTo(program.Ready()[0]);
  int served = 0;
  for (int i = 0; i < 600; ++i) served += Describes(channel);
  EXPECT_EQ(served, 600);
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(Logs, LibrariesSpeakOurFormat) {
  Program program("/bin/sh", ByShell("GRPC_POLL_STRATEGY=poll GRPC_VERBOSITY=debug exec \"$0\" \"$@\"",
                                     {"--log-format", "json", "--log-level", "debug"}));
  EXPECT_TRUE(Describes(ConnectTo(program.Ready()[0])));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0);
  std::istringstream lines(program.err());
  int from_grpc = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    from_grpc += json.value("library", "") == "grpc";
  }
  EXPECT_GT(from_grpc, 0) << program.err();
  EXPECT_NE(program.err().find("GRPC_POLL_STRATEGY is not followed"), std::string::npos) << program.err();
}

/// D7: a flood of refusals is a few lines and a count, in the log and in the audit log.
TEST(Logs, AFloodOfRefusalsIsFewLinesAndACount) {
  std::string folder = "/tmp/tilewire-audit-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/audit.jsonl";
  std::vector<std::string> arguments = kServe;
  arguments.insert(arguments.end(), {"--audit-log", file});
  Program program(arguments);
  const auto stub = v1::Kernels::NewStub(ConnectTo(program.Ready()[0]));
  constexpr int kCalls = 2000;
  for (int i = 0; i < kCalls; ++i) {
    grpc::ClientContext context;
    v1::RmseResponse response;
    EXPECT_EQ(stub->Rmse(&context, {}, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();

  std::ifstream lines(file);
  int64_t told = 0, count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    EXPECT_EQ(json["method"], "Kernels.Rmse");
    EXPECT_EQ(json["status"], "INVALID_ARGUMENT");
    told += json["calls"].get<int64_t>();
  }
  EXPECT_EQ(told, kCalls) << "every call is told of, in a line or in a count";
  EXPECT_LT(count, kCalls);
  EXPECT_NE(program.err().find("calls folded calls="), std::string::npos) << program.err();
  std::filesystem::remove_all(folder);
}

/// gRPC has a line for each handshake that fails, and says the same in each.
TEST(Logs, AFloodOfHandshakesThatFailIsFewLinesAndACount) {
  const Credentials credentials;
  std::vector<std::string> arguments = kServe;
  arguments.insert(arguments.end(),
                   {"--log-format", "json", "--tls-cert", credentials.Paths().tls.certificate, "--tls-key",
                    credentials.Paths().tls.key});
  Program program(arguments);
  const std::string address = program.Ready()[0];
  constexpr int kConnections = 400;  // far more than 20 a second
  for (int i = 0; i < kConnections; ++i) SpeakInClear(address);
  EXPECT_TRUE(
      Connected(ConnectByTls("localhost" + address.substr(address.rfind(':')), credentials.servers.pem())));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
  std::istringstream lines(program.err());
  int64_t own = 0, folded = 0, serving = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    if (json["msg"] == "serving calls") {
      EXPECT_EQ(json["address"], address);
      EXPECT_EQ(json["tls"], true);
      ++serving;
    }
    if (json.value("library", "") != "grpc") continue;
    if (json["msg"] == "lines folded") {
      folded += json["lines"].get<int64_t>();
      EXPECT_NE(json["text"], "");
    } else {
      ++own;
    }
  }
  EXPECT_GE(own + folded, kConnections) << "every one is told of, in a line or in a count";
  EXPECT_LT(own, kConnections);
  EXPECT_EQ(serving, 1);
}

TEST(ProgramSignals, AHangUpEndsNothing) {
  Program program(kServe);
  const auto channel = ConnectTo(program.Ready()[0]);
  program.Signal(SIGHUP);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Describes(channel));
  EXPECT_TRUE(program.running());
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
}

TEST(ProgramThreads, ThoseThatCannotBeMadeAreAnErrorMessage) {
  // The limit holds for a user who is not root and has no other processes.
  if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0) GTEST_SKIP() << "needs root and setpriv";
  const std::string as_nobody = "exec /usr/bin/setpriv --reuid=65529 --clear-groups ";
  Program allowed("/bin/sh", {"-c", as_nobody + "/usr/bin/test -x \"$0\"", TILEWIRE_TILEWIRED});
  if (allowed.Wait(30) != 0) GTEST_SKIP() << "that user cannot reach the program";
  for (const int most : {3, 6, 12, 24}) {
    Program program("/bin/sh", ByShell(as_nobody + "/usr/bin/prlimit --nproc=" + std::to_string(most) +
                                       " \"$0\" \"$@\""));
    EXPECT_EQ(program.Wait(60), 3) << most << " threads: " << program.err();
    EXPECT_NE(program.err().find("cannot start"), std::string::npos) << most << ": " << program.err();
    EXPECT_EQ(program.out(), "") << most;
  }
}

}  // namespace
}  // namespace tilewire::testing

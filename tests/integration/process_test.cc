// The program: ready lines, exit codes, signals, metrics.
#include <filesystem>
#include <fstream>

#include "server/base/memory.h"
#include "server/base/threads.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kProcessShape{500, 1000};  // f32: 2 MB

std::vector<std::string> Cpu(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"--device",       "cpu",   "--listen", "localhost:0",
                                     "--device-bytes", "512MiB"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void ExpectServes(const std::string& address) {
  const std::string a = Floats(500'000, 1), b = Floats(500'000, 2);
  RawStream raw(ConnectTo(address));
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kProcessShape))) << address;
  raw.SendAll(0, a);
  raw.SendAll(1, b);
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(raw.output, HostRmse(a, b, DType::kF32, kProcessShape));
}

TEST(Process, TwoListenersAndACleanEnd) {
  const std::string path = ::testing::TempDir() + "tilewired-" + std::to_string(getpid()) + ".sock";
  Program program(Cpu({"--listen", "unix:" + path}));
  const auto addresses = program.Ready(2);
  EXPECT_TRUE(addresses[0].starts_with("localhost:")) << addresses[0];
  EXPECT_FALSE(addresses[0].ends_with(":0")) << addresses[0];
  EXPECT_EQ(addresses[1], "unix:" + path);
  for (const auto& address : addresses) ExpectServes(address);
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
  const std::string out = program.out();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2) << out;
  unlink(path.c_str());
}

/// A value of /proc/PID/status, of the process or of a thread of it.
std::string StatusOf(const std::filesystem::path& process, const std::string& key) {
  std::ifstream in(process / "status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  return "";
}

TEST(Process, KeepsNothingThatServingNeedsNoneOf) {
  Program program(Cpu());
  ExpectServes(program.Ready()[0]);
  const auto process = std::filesystem::path("/proc") / std::to_string(program.pid());
  int threads = 0;
  for (const auto& thread : std::filesystem::directory_iterator(process / "task")) {
    const std::string capabilities = StatusOf(thread, "CapEff");
    if (capabilities.empty()) continue;  // it is gone
    ++threads;
    EXPECT_EQ(capabilities, "0000000000000000") << thread;
    EXPECT_EQ(StatusOf(thread, "NoNewPrivs"), "1") << thread;
    EXPECT_EQ(StatusOf(thread, "Seccomp"), "2") << thread;
  }
  EXPECT_GT(threads, 4);
  Program free(Cpu({"--no-confinement"}));
  ExpectServes(free.Ready()[0]);
  EXPECT_EQ(StatusOf(std::filesystem::path("/proc") / std::to_string(free.pid()), "NoNewPrivs"), "0");
  Program nobody(Cpu({"--user", "no-such-user"}));
  EXPECT_EQ(nobody.Wait(60), 3);
  EXPECT_NE(nobody.err().find("no-such-user"), std::string::npos) << nobody.err();
}

/// Else a signal that comes while the main thread does not wait for it would end the process at once.
TEST(Process, NoThreadTakesAStopButTheOneThatWaitsForIt) {
  Program program(Cpu());
  program.Ready();
  const std::string own = std::to_string(program.pid());
  int others = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + own + "/task")) {
    const std::string blocked = StatusOf(thread, "SigBlk");
    if (thread.path().filename() == own || blocked.empty()) continue;  // that one, or one that is gone
    ++others;
    for (const int signal : {SIGTERM, SIGINT})
      EXPECT_NE(std::stoull(blocked, nullptr, 16) & (1ULL << (signal - 1)), 0U) << thread << " " << signal;
  }
  EXPECT_GT(others, 4);
}

/// With one lane for two threads jobs wait for each other's replies, and calls for jobs.
TEST(Process, HasAsManyLanesOfSmallJobsAsItsCoresAreWorth) {
  Program program(Cpu({"--lanes", "1"}));
  program.Ready();
  int lanes = 0;
  const std::string tasks = "/proc/" + std::to_string(program.pid()) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(tasks))
    if (StatusOf(thread, "Name") == "tw-cpu-lane") ++lanes;
  EXPECT_EQ(lanes, 1 + SmallLanes(DefaultCpuThreads()));
}

TEST(Process, InterruptEndsItToo) {
  Program program(Cpu());
  program.Ready();
  program.Signal(SIGINT);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
}

TEST(Process, BadUsageIsTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all{
      {{"--nonsense"}, "--nonsense"},
      {{"--lanes", "0"}, "--lanes"},
      {{"--listen", "nowhere"}, "--listen"},
      {{"--device", "tpu"}, "--device"},
      {{"--block-bytes", "4TiB"}, "--block-bytes"},
      {{"--config", "/does/not/exist"}, "/does/not/exist"}};
  for (const auto& [arguments, named] : all) {
    Program program(arguments);
    EXPECT_EQ(program.Wait(30), 2) << named << program.err();
    EXPECT_NE(program.err().find(named), std::string::npos) << program.err();
    EXPECT_EQ(program.out(), "") << named;
  }
  Program version({"--version"});
  EXPECT_EQ(version.Wait(30), 0);
  EXPECT_NE(version.out().find("0.1.0"), std::string::npos) << version.out();
}

TEST(Process, UnknownVariablesAreToldAndDoNotStopIt) {
  auto arguments = Cpu({"--log-format", "json"});
  arguments.insert(arguments.begin(), {"TILEWIRE_LANEZ=8", "TILEWIRE_SERVER=h:1", TILEWIRE_TILEWIRED});
  Program program("/usr/bin/env", arguments);
  ExpectServes(program.Ready()[0]);
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
  const std::string log = program.err();
  EXPECT_NE(log.find(R"("level":"warn","msg":"unknown environment variable","name":"TILEWIRE_LANEZ",)"
                     R"("nearest":"TILEWIRE_LANES"})"),
            std::string::npos)
      << log;
  EXPECT_EQ(log.find("TILEWIRE_SERVER"), std::string::npos) << "the clients' is no mistake: " << log;
}

TEST(Process, TakenPortIsThreeAndNamed) {
  Program first(Cpu());
  const std::string address = first.Ready()[0];
  Program second({"--device", "cpu", "--listen", address});
  EXPECT_EQ(second.Wait(30), 3) << second.err();
  EXPECT_NE(second.err().find(address), std::string::npos) << second.err();
  EXPECT_EQ(second.out(), "");
  ExpectServes(address);
}

TEST(Process, NoGpuIsThree) {
  if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0)
    GTEST_SKIP() << "there may be a GPU";
  Program program({"--device", "cuda", "--listen", "localhost:0"});
  EXPECT_EQ(program.Wait(30), 3) << program.err();
  EXPECT_EQ(program.out(), "");
  EXPECT_NE(program.err().find("cannot start"), std::string::npos) << program.err();
}

TEST(Process, TerminationUnderLoadLetsRunningCallsFinish) {
  Program program(Cpu({"--drain-seconds", "120"}));
  const std::string address = program.Ready()[0];
  const std::string data = Floats(500'000, 1);
  std::atomic<int> opened{0}, good{0}, refused{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)  // in flight when the signal comes, ended after it
    threads.emplace_back([&] {
      RawStream raw(ConnectTo(address));
      ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kProcessShape)));
      ++opened;
      raw.SendAll(0, data, 100'000, 0, 1'000'000);
      stop.wait(false);
      raw.SendAll(0, data, 100'000, 1'000'000);
      const auto status = raw.End();
      EXPECT_TRUE(status.ok()) << status.error_message();
      good += status.ok() && raw.output == HostTranspose(data, DType::kF32, kProcessShape);
    });
  for (int i = 0; i < 2; ++i)  // and new ones all the time
    threads.emplace_back([&] {
      const auto stub = v1::Kernels::NewStub(ConnectTo(address));
      for (;;) {
        grpc::ClientContext context;
        v1::RmseResponse response;
        const auto status = stub->Rmse(&context, RmseCall({4}, Floats(4, 1), Floats(4, 2)), &response);
        if (status.ok()) continue;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
        ++refused;
        return;
      }
    });
  ASSERT_TRUE(Eventually([&] { return opened == 6; }));
  program.Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return refused == 2; }));
  EXPECT_TRUE(program.running());
  stop = true;
  stop.notify_all();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 6);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
}

TEST(Process, StalledCallIsCutAtTheEndOfTheDrainTime) {
  Program program(Cpu({"--drain-seconds", "0.1"}));
  RawStream raw(ConnectTo(program.Ready()[0]));
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kProcessShape)));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(25), 1) << program.err();
  ExpectError(raw.Drain(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_NE(program.err().find("status=UNAVAILABLE reason=DRAINING"), std::string::npos) << program.err();
  EXPECT_EQ(program.err().find("CANCELLED"), std::string::npos) << program.err();
}

TEST(Process, SecondSignalEndsAtOnce) {
  Program program(Cpu({"--drain-seconds", "300"}));
  RawStream raw(ConnectTo(program.Ready()[0]));
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kProcessShape)));
  program.Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return program.err().find("draining") != std::string::npos; }));
  EXPECT_TRUE(program.running()) << "it waits for the call";
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(50), 1) << program.err();
}

/// By threads of a library, which have little room.
TEST(Process, WhoAsksTheMetricsServerForAnythingElseIsAnswered) {
  Program program(Cpu({"--metrics-listen", "127.0.0.1:0"}));
  const std::string address = program.Ready()[0], metrics = program.MetricsAddress();
  for (const char* path : {"/", "/favicon.ico", "/metrics/../..", "/%00", "/a?b=c"})
    EXPECT_EQ(HttpGet(metrics, path).find("HTTP/1.1 404"), 0u) << path;
  for (const char* method : {"HEAD", "OPTIONS", "POST", "PUT", "DELETE", "NONE"}) {
    EXPECT_EQ(HttpGet(metrics, "/metrics", method).find("HTTP/1.1 "), 0u) << method;
    EXPECT_EQ(HttpGet(metrics, "/", method).find("HTTP/1.1 "), 0u) << method;
  }
  EXPECT_EQ(HttpGet(metrics, "/metrics").find("HTTP/1.1 200"), 0u);
  ExpectServes(address);
}

TEST(Process, MetricsAreAtZeroAfterWork) {
  Program program(Cpu({"--metrics-listen", "127.0.0.1:0"}));
  const std::string address = program.Ready()[0], metrics = program.MetricsAddress();
  {
    RawStream running(ConnectTo(address));
    ASSERT_TRUE(running.Open(RmseOpen(v1::DTYPE_F32, kProcessShape)));
    std::string text = HttpGet(metrics, "/metrics");
    for (const char* line : {"\ntilewire_jobs_open 1\n", "\ntilewire_jobs_in_flight 0\n",
                             "\ntilewire_device_used_bytes 0\n", "\ntilewire_pinned_used_bytes 0\n"})
      EXPECT_NE(text.find(line), std::string::npos) << line << text;
    ASSERT_TRUE(running.Send(0, 0, "x"));
    EXPECT_TRUE(Eventually([&] {
      text = HttpGet(metrics, "/metrics");
      return text.find("\ntilewire_jobs_in_flight 1\n") != std::string::npos;
    })) << text;
    EXPECT_EQ(text.find("\ntilewire_device_used_bytes 0\n"), std::string::npos);
    running.context.TryCancel();
  }
  ExpectServes(address);
  std::string text;
  const std::vector<std::string> wanted{
      "\ntilewire_jobs_in_flight 0\n",     "\ntilewire_jobs_queued 0\n",       "\ntilewire_jobs_open 0\n",
      "\ntilewire_device_used_bytes 0\n",  "\ntilewire_pinned_used_bytes 0\n", "\ntilewire_device_failed 0\n",
      "\ntilewire_jobs_admitted_total 2\n"};
  EXPECT_TRUE(Eventually([&] {
    text = HttpGet(metrics, "/metrics");
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const auto& line) { return text.find(line) != std::string::npos; });
  })) << text;
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
}

}  // namespace
}  // namespace tilewire::testing

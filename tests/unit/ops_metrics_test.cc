// Metrics: what is counted, how a scrape over HTTP sees it, and that clients cannot make series.
#include "server/ops/metrics.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/ops/logging.h"

namespace tilewire::ops {
namespace {

class MetricsTest : public ::testing::Test {
 protected:
  void SetUp() override { InitLogging("text", "error"); }

  static rpc::CallRecord Record(std::string method, std::string operation, Status status = Status()) {
    rpc::CallRecord record{.method = std::move(method), .operation = std::move(operation)};
    record.status = std::move(status);
    record.timing.wall_us = 750;
    return record;
  }
  static void Has(const std::string& text, const std::string& line) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << "no `" << line << "` in\n"
                                                                         << text;
  }
};

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/// The whole response to GET `path`; empty where nobody listens.
std::string Get(int port, const std::string& path) {
  const int fd = Connect(port);
  if (fd < 0) return "";
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string response;
  char buffer[4096];
  for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
    response.append(buffer, static_cast<size_t>(n));
  close(fd);
  return response;
}

int PortOf(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

TEST_F(MetricsTest, FurtherStreamsAreNoCallsOfTheirOwn) {
  Metrics metrics("1.2.3", "cpu", nullptr);
  for (const Status& status : {Status(), Status(Code::kFailedPrecondition, "JOIN_LATE", "late"), Status()}) {
    metrics.OnCallStart("Kernels.Execute");
    rpc::CallRecord joined = Record("Kernels.Execute", "rmse", status);
    joined.joins = true;
    metrics.OnCallEnd(joined);
  }
  const std::string text = metrics.Render();
  Has(text, R"(tilewire_joined_streams_total{status="OK"} 2)");
  Has(text, R"(tilewire_joined_streams_total{status="other"} 1)");
  Has(text, R"(tilewire_calls_in_progress{method="Kernels.Execute"} 0)");
  EXPECT_EQ(text.find("tilewire_calls_total{"), std::string::npos);
}

TEST_F(MetricsTest, CountsCallsByMethodOperationAndStatus) {
  Metrics metrics("1.2.3", "cpu", nullptr);
  metrics.OnCallStart("Kernels.Rmse");
  Has(metrics.Render(), R"(tilewire_calls_in_progress{method="Kernels.Rmse"} 1)");
  rpc::CallRecord good = Record("Kernels.Rmse", "rmse");
  good.bytes_in = 4096;
  good.bytes_out = 8;
  good.timing.stage_us[static_cast<size_t>(Stage::kKernel)] = 20;
  good.timing.stage_us[static_cast<size_t>(Stage::kOther)] = 730;
  metrics.OnCallEnd(good);
  metrics.OnCallStart("Kernels.Rmse");
  metrics.OnCallEnd(Record("Kernels.Rmse", "", Busy("queue full", 10)));
  const std::string text = metrics.Render();
  Has(text, R"(tilewire_build_info{device="cpu",version="1.2.3"} 1)");
  Has(text, R"(tilewire_calls_total{method="Kernels.Rmse",operation="rmse",status="OK"} 1)");
  Has(text, R"(tilewire_calls_total{method="Kernels.Rmse",operation="none",status="RESOURCE_EXHAUSTED"} 1)");
  Has(text, R"(tilewire_refusals_total{reason="BUSY"} 1)");
  Has(text, R"(tilewire_refusals_total{reason="LIMIT"} 0)");
  Has(text, R"(tilewire_received_bytes_total{method="Kernels.Rmse"} 4096)");
  Has(text, R"(tilewire_sent_bytes_total{method="Kernels.Rmse"} 8)");
  Has(text, R"(tilewire_calls_in_progress{method="Kernels.Rmse"} 0)");
  Has(text, R"(tilewire_call_wall_seconds_count{method="Kernels.Rmse"} 2)");
  Has(text, R"(tilewire_call_wall_seconds_bucket{method="Kernels.Rmse",le="0.0005"} 0)");
  Has(text, R"(tilewire_call_wall_seconds_bucket{method="Kernels.Rmse",le="0.001"} 2)");
  Has(text, R"(tilewire_stage_seconds_count{stage="kernel"} 1)");
  Has(text, R"(tilewire_stage_seconds_count{stage="h2d"} 0)");
  Has(text, R"(tilewire_stage_seconds_count{stage="other"} 1)");
  Has(text, R"(tilewire_stage_seconds_sum{stage="other"} 0.00073)");
}

TEST_F(MetricsTest, EveryMethodAndOperationOfTheServerHasItsOwnLabel) {
  Metrics metrics("1", "cpu", nullptr);
  const std::pair<std::string, std::string> calls[] = {{"Kernels.Rmse", "rmse"},
                                                       {"Kernels.Transpose", "transpose"},
                                                       {"Kernels.GaussianPdf", "gaussian_pdf"},
                                                       {"Kernels.Execute", "gaussian_pdf"},
                                                       {"Device.Describe", "none"},
                                                       {"Device.DescribeKernels", "none"}};
  for (const auto& [method, operation] : calls) {
    metrics.OnCallStart(method);
    metrics.OnCallEnd(Record(method, operation == "none" ? "" : operation));
    Has(metrics.Render(),
        "tilewire_calls_total{method=\"" + method + "\",operation=\"" + operation + "\",status=\"OK\"} 1");
  }
}

TEST_F(MetricsTest, ClientsCannotMakeSeries) {
  Metrics metrics("1", "cpu", nullptr);
  for (const char* same : {"", "seed"}) {
    metrics.OnCallStart(std::string("Evil.") + same);
    metrics.OnCallEnd(Record(std::string("Evil.") + same, std::string("op\n\"") + same,
                             Status(Code::kInternal, std::string("R") + same, "m")));
  }
  const auto lines = [&] {
    const std::string text = metrics.Render();
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = lines();
  for (int i = 0; i < 1000; ++i) {
    const std::string n = std::to_string(i);
    metrics.OnCallStart("Evil." + n);
    metrics.OnCallEnd(Record("Evil." + n, "op" + n, Status(Code::kInternal, "R" + n, "m")));
  }
  EXPECT_EQ(lines(), before);
  Has(metrics.Render(), R"(tilewire_calls_total{method="other",operation="other",status="INTERNAL"} 1002)");
  Has(metrics.Render(), R"(tilewire_refusals_total{reason="other"} 1002)");
  Has(metrics.Render(), R"(tilewire_calls_in_progress{method="other"} 0)");
}

TEST_F(MetricsTest, EngineIsReadAtEachScrape) {
  EngineStats stats;
  Metrics metrics("1", "cpu", [&] { return stats; });
  stats.device_bytes = 1000;
  stats.device_bytes_in_use = 600;
  stats.jobs_queued = 2;
  stats.jobs_refused_busy = 3;
  stats.jobs_refused_limit = 4;
  stats.bytes_copied_in = 77;
  stats.bytes_copied_by_cpu = 99;
  stats.device_failed = true;
  const std::string text = metrics.Render();
  Has(text, "tilewire_device_budget_bytes 1000");
  Has(text, "tilewire_device_used_bytes 600");
  Has(text, "tilewire_jobs_queued 2");
  Has(text, R"(tilewire_jobs_refused_total{reason="BUSY"} 3)");
  Has(text, R"(tilewire_jobs_refused_total{reason="LIMIT"} 4)");
  Has(text, "tilewire_copied_in_bytes_total 77");
  Has(text, "tilewire_copied_bytes_total 99");
  Has(text, "tilewire_device_failed 1");
}

TEST_F(MetricsTest, ReadmeNamesEachMetric) {
  Metrics metrics("1", "cpu", [] { return EngineStats(); });
  metrics.OnCallStart("Kernels.Rmse");
  metrics.OnCallEnd(Record("Kernels.Rmse", "rmse"));
  std::ifstream in(TILEWIRE_OPS_README);
  ASSERT_TRUE(in) << TILEWIRE_OPS_README;
  std::stringstream readme;
  readme << in.rdbuf();
  std::istringstream scrape(metrics.Render());
  int families = 0;
  for (std::string line; std::getline(scrape, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    const std::string name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_TRUE(name.starts_with("tilewire_")) << name;
    EXPECT_NE(readme.str().find("`" + name + "`"), std::string::npos)
        << name << " is not in server/ops/README.md";
    ++families;
  }
  EXPECT_EQ(families, 50);
}

TEST_F(MetricsTest, ProcessIsPlausible) {
  const ProcessStats stats = ReadProcessStats();
  EXPECT_GT(stats.resident_bytes, 1 << 20);
  EXPECT_GE(stats.open_files, 3);
  EXPECT_GE(stats.max_open_files, stats.open_files);
  EXPECT_GE(stats.cpu_seconds, 0);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double now_seconds = std::chrono::duration<double>(now).count();
  EXPECT_LE(stats.start_time_seconds, now_seconds + 5);
  EXPECT_GT(stats.start_time_seconds, now_seconds - 3600);
  const int fd = dup(0);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ReadProcessStats().open_files, stats.open_files + 1);
  close(fd);
}

TEST_F(MetricsTest, ScrapesOverHttp) {
  EngineStats stats;
  stats.jobs_admitted = 5;
  stats.jobs_windowed = 2;
  stats.jobs_on_host = 6;
  Metrics metrics("1.2.3", "cpu", [&] { return stats; });
  auto bound = metrics.Serve("127.0.0.1:0");
  ASSERT_TRUE(bound) << bound.error().ToString();
  EXPECT_EQ(bound->find("127.0.0.1:"), 0u);
  const int port = PortOf(*bound);
  ASSERT_GT(port, 0);
  metrics.OnCallStart("Device.Describe");
  metrics.OnCallEnd(Record("Device.Describe", ""));
  const std::string response = Get(port, "/metrics");
  EXPECT_EQ(response.find("HTTP/1.1 200"), 0u) << response.substr(0, 200);
  for (const char* sample :
       {"tilewire_calls_total{method=\"Device.Describe\",operation=\"none\",status=\"OK\"} 1\n",
        "tilewire_jobs_admitted_total 5\n", "tilewire_jobs_windowed_total 2\n",
        "tilewire_jobs_on_host_total 6\n", "tilewire_process_resident_memory_bytes ",
        "tilewire_process_open_fds ", "tilewire_process_start_time_seconds ",
        "tilewire_build_info{device=\"cpu\",version=\"1.2.3\"} 1\n"}) {
    EXPECT_NE(response.find(sample), std::string::npos) << sample;
  }
  EXPECT_EQ(Get(port, "/etc/passwd").find("HTTP/1.1 404"), 0u);
  EXPECT_FALSE(metrics.Serve("127.0.0.1:0")) << "serves already";
  metrics.StopServing();
  EXPECT_EQ(Get(port, "/metrics"), "");
  EXPECT_TRUE(metrics.Serve("localhost:0")) << "may serve again, and localhost is a host";
}

TEST_F(MetricsTest, ConnectionsByWhatBecameOfThem) {
  Metrics metrics("1", "cpu", nullptr);
  for (int i = 0; i < 3; ++i) metrics.OnConnectionOpened();
  metrics.OnConnectionEnded(rpc::Ending::kMemory);
  metrics.OnMessageRefused();
  metrics.OnConnectionClosed();
  metrics.OnConnectionRefused(rpc::Refusal::kPeer);
  const std::string text = metrics.Render();
  Has(text, "tilewire_connections 2");
  Has(text, "tilewire_connections_opened_total 3");
  Has(text, R"(tilewire_connections_refused_total{reason="peer"} 1)");
  Has(text, R"(tilewire_connections_refused_total{reason="full"} 0)");
  Has(text, R"(tilewire_connections_ended_total{reason="memory"} 1)");
  Has(text, R"(tilewire_connections_ended_total{reason="failed_calls"} 0)");
  Has(text, "tilewire_messages_refused_total 1");
  Has(text, "tilewire_log_lines_dropped_total 0");
}

TEST_F(MetricsTest, FilesOfCredentials) {
  Metrics metrics("1", "cpu", nullptr);
  EXPECT_EQ(metrics.Render().find("credential"), std::string::npos) << "there are none";
  metrics.OnCredentials(
      {.refused = 2, .certificate_ends = std::chrono::system_clock::from_time_t(1800000000)});
  Has(metrics.Render(), "tilewire_credential_files_refused 2");
  Has(metrics.Render(), "tilewire_certificate_expiry_timestamp_seconds 1800000000");
}

TEST_F(MetricsTest, TakenPortsAreErrors) {
  Metrics first("1", "cpu", nullptr), second("1", "cpu", nullptr);
  auto bound = first.Serve("127.0.0.1:0");
  ASSERT_TRUE(bound);
  auto refused = second.Serve(*bound);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(refused.error().reason(), "CANNOT_LISTEN");
  EXPECT_NE(refused.error().message().find(*bound), std::string::npos);
  EXPECT_FALSE(second.Serve("192.0.2.1:0")) << "an address of another machine";
}

TEST_F(MetricsTest, ThreadsAndScrapesTogether) {
  Metrics metrics("1", "cpu", nullptr);
  constexpr int kThreads = 4, kCalls = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        metrics.OnCallStart("Kernels.Transpose");
        metrics.OnCallEnd(Record("Kernels.Transpose", "transpose"));
      }
    });
  }
  for (int i = 0; i < 20; ++i) metrics.Render();
  for (auto& thread : threads) thread.join();
  Has(metrics.Render(),
      R"(tilewire_calls_total{method="Kernels.Transpose",operation="transpose",status="OK"} 2000)");
  Has(metrics.Render(), R"(tilewire_call_wall_seconds_count{method="Kernels.Transpose"} 2000)");
}

}  // namespace
}  // namespace tilewire::ops

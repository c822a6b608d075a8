// HAProxy as deploy/haproxy.cfg sets it up, before two servers.
#pragma once

#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "tests/integration/program.h"

namespace tilewire::testing {

/// Replaces the one occurrence of `from`; fails the test where there is none, or more.
inline void ReplaceOne(std::string* text, const std::string& from, const std::string& to) {
  const size_t at = text->find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text->replace(at, from.size(), to);
  EXPECT_EQ(text->find(from, at + to.size()), std::string::npos) << from;
}

/// Where the package puts it; empty where it is not installed.
inline std::string HaproxyPath() {
  for (const char* path : {"/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"})
    if (access(path, X_OK) == 0) return path;
  return "";
}

/// A TCP socket bound to a free loopback port.
class BoundSocket {
 public:
  BoundSocket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~BoundSocket() { close(fd_); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;
  int fd() const { return fd_; }
  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

/// A tilewired that advertises the one address it listens on, with metrics.
class AdvertisingServer {
 public:
  AdvertisingServer() {
    // Its address must be known before it starts, so it is a port that was free a moment ago: taken since,
    // the server ends with code 3 and another one is tried.
    for (int attempt = 0; attempt < 20 && !program_; ++attempt) {
      { address_ = BoundSocket().address(); }
      auto program = std::make_unique<Program>(std::vector<std::string>{
          "--device", "cpu", "--device-bytes", "512MiB", "--block-bytes", "64KiB", "--listen", address_,
          "--advertise", address_, "--metrics-listen", "127.0.0.1:0", "--drain-seconds", "120"});
      EXPECT_TRUE(Eventually([&] {
        return !program->running() || program->out().find("tilewired ready") != std::string::npos;
      })) << program->err();
      if (program->running()) program_ = std::move(program);
    }
    EXPECT_TRUE(program_) << "no free port";
    metrics_ = program().MetricsAddress();
  }
  Program& program() { return *program_; }
  const std::string& address() const { return address_; }

  /// The sum of all samples whose line begins with `begin`.
  double Metric(const std::string& begin) const { return SumOfMetric(metrics_, begin); }
  std::string instance() const {
    grpc::ClientContext context;
    v1::DescribeResponse response;
    EXPECT_TRUE(v1::Device::NewStub(ConnectTo(address_))->Describe(&context, {}, &response).ok());
    return response.instance();
  }
  /// Waits until nothing is leased and no job is known.
  void ExpectIdle() const {
    EXPECT_TRUE(Eventually([&] {
      return Metric("tilewire_jobs_in_flight ") == 0 && Metric("tilewire_jobs_queued ") == 0 &&
             Metric("tilewire_device_used_bytes ") == 0 && Metric("tilewire_pinned_used_bytes ") == 0;
    })) << address_;
  }

 private:
  std::unique_ptr<Program> program_;
  std::string address_, metrics_;
};

/// HAProxy with the example configuration, on a loopback port of its own, before those servers.
class HaproxyProgram {
 public:
  explicit HaproxyProgram(const std::array<AdvertisingServer, 2>& servers) {
    std::ifstream file(TILEWIRE_HAPROXY_CFG);
    std::ostringstream text;
    text << file.rdbuf();
    std::string config = text.str();
    // It listens on a socket that is bound here, so that no port can be lost in between.
    ReplaceOne(&config, "bind 127.0.0.1:50051 ", "bind fd@" + std::to_string(Program::kInherited) + " ");
    ReplaceOne(&config, "server one 127.0.0.1:50061", "server one " + servers[0].address());
    ReplaceOne(&config, "server two 127.0.0.1:50062", "server two " + servers[1].address());
    path_ = ::testing::TempDir() + "haproxy-" + std::to_string(getpid()) + ".cfg";
    std::ofstream(path_) << config;
    EXPECT_EQ(listen(socket_.fd(), 64), 0);
    program_ =
        std::make_unique<Program>(HaproxyPath(), std::vector<std::string>{"-db", "-f", path_}, socket_.fd());
  }
  ~HaproxyProgram() {
    program_.reset();
    unlink(path_.c_str());
  }
  const std::string& address() const { return socket_.address(); }
  Program& program() { return *program_; }

 private:
  BoundSocket socket_;
  std::string path_;
  std::unique_ptr<Program> program_;
};

}  // namespace tilewire::testing

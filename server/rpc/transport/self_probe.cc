#include "server/rpc/transport/self_probe.h"

#include <grpcpp/create_channel_posix.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "server/base/timing.h"
#include "tilewire/v1/device.grpc.pb.h"

namespace tilewire::rpc {
namespace {
constexpr std::chrono::seconds kPeriod{5}, kTimeout{2};
constexpr int kFailures = 3;

/// Why it does not come about; empty: it is there.
std::string WaitForConnection(int fd) {
  pollfd connected{.fd = fd, .events = POLLOUT, .revents = 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(kTimeout).count();
  if (poll(&connected, 1, static_cast<int>(ms)) <= 0) return "connecting takes too long";
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error == 0 ? "" : std::strerror(error);
}
}  // namespace

SelfProbe::SelfProbe(DialAll dial_all, std::string token, Report report)
    : dial_all_(std::move(dial_all)),
      token_(std::move(token)),
      report_(std::move(report)),
      thread_([this] { Run(); }) {}

SelfProbe::~SelfProbe() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

std::string SelfProbe::Ask() const {
  auto connections = dial_all_();
  if (!connections) return std::string(connections.error().message());
  std::string why;
  for (FileDescriptor& connection : *connections)
    if (why.empty()) why = AskOver(std::move(connection));
  return why;
}

std::string SelfProbe::AskOver(FileDescriptor connection) const {
  if (std::string why = WaitForConnection(connection.get()); !why.empty()) return why;
  const auto stub = v1::Device::NewStub(
      grpc::CreateCustomInsecureChannelFromFd("self-probe", connection.Release(), grpc::ChannelArguments()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  context.AddMetadata("x-tilewire-probe", token_);
  v1::DescribeResponse response;
  const grpc::Status status = stub->Describe(&context, {}, &response);
  return status.ok() ? "" : status.error_message();
}

void SelfProbe::Run() {
  int failures = 0;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const TimePoint next = Clock::now() + kPeriod;
      while (!stop_ && wake_.WaitUntil(mutex_, next)) {
      }
      if (stop_) return;
    }
    const std::string why = Ask();
    if (why.empty()) {
      if (failures >= kFailures) report_(true, "");
      failures = 0;
    } else if (++failures == kFailures) {
      report_(false, why);
    }
  }
}

}  // namespace tilewire::rpc

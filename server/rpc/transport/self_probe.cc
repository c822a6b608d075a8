#include "server/rpc/transport/self_probe.h"

#include <grpcpp/create_channel.h>

#include <chrono>
#include <utility>

#include "server/base/timing.h"
#include "tilewire/v1/device.grpc.pb.h"

namespace tilewire::rpc {
namespace {
constexpr std::chrono::seconds kPeriod{5}, kTimeout{2};
constexpr int kFailures = 3;
}  // namespace

SelfProbe::SelfProbe(std::vector<std::string> addresses, std::string token, Report report)
    : addresses_(std::move(addresses)),
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

std::string SelfProbe::Dial(const std::string& address) const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own, every time
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // to this very server, whatever the environment says
  const auto stub =
      v1::Device::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  context.AddMetadata("x-tilewire-probe", token_);
  v1::DescribeResponse response;
  const grpc::Status status = stub->Describe(&context, {}, &response);
  return status.ok() ? "" : address + ": " + status.error_message();
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
    std::string why;
    for (const std::string& address : addresses_)
      if (why.empty()) why = Dial(address);
    if (why.empty()) {
      if (failures >= kFailures) report_(true, "");
      failures = 0;
    } else if (++failures == kFailures) {
      report_(false, why);
    }
  }
}

}  // namespace tilewire::rpc

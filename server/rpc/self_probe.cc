#include "server/rpc/self_probe.h"

#include <grpcpp/create_channel.h>

#include <chrono>
#include <utility>

#include "tilewire/v1/device.grpc.pb.h"

namespace tilewire::rpc {
namespace {
constexpr std::chrono::seconds kPeriod{5}, kTimeout{2};
constexpr int kFailures = 3;
}  // namespace

SelfProbe::SelfProbe(std::string address, std::function<void(bool live)> report)
    : address_(std::move(address)), report_(std::move(report)), thread_([this] { Run(); }) {}

SelfProbe::~SelfProbe() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool SelfProbe::Dial() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own, every time
  const auto stub =
      v1::Device::NewStub(grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  context.AddMetadata("x-request-id", "self-probe");
  v1::DescribeResponse response;
  return stub->Describe(&context, {}, &response).ok();
}

void SelfProbe::Run() {
  int failures = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPeriod, [this] { return stop_; })) {
    lock.unlock();
    const bool ok = Dial();
    lock.lock();
    if (ok) {
      if (failures >= kFailures) report_(true);
      failures = 0;
    } else if (++failures == kFailures) {
      report_(false);
    }
  }
}

}  // namespace tilewire::rpc

// Calls of connections from near and from afar come on one queue, and have one crew: two would wait in gRPC's
// one epoll set, each in the other's way.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/client.h"
#include "tests/bench/relay.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

using bench::Relay;
using rpc::WindowClass;

/// Each way: so the round trip is one of the far, however slow the machine is.
constexpr std::chrono::milliseconds kOneWay{10};

int ThreadsOfCrews() {
  int found = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    found += name == "tw-crew";
  }
  return found;
}

TestServer::Options ForBoth() {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  options.rpc.receive.distance_bytes = 8 * rpc::PlaceBytes(rpc::kMostWideBytes);
  options.rpc.connections.acknowledge_within = std::chrono::minutes(1);  // for a machine that stands still
  options.rpc.queues = 3;
  return options;
}

grpc::Status Rmse(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  const std::string bytes = Floats(1000, 1);
  v1::RmseResponse response;
  return v1::Kernels::NewStub(channel)->Rmse(&context, RmseCall({1000}, bytes, bytes), &response);
}

TEST(SharedQueue, HasOneCrewWhoeverCalls) {
  TestServer server(ForBoth());
  EXPECT_TRUE(Eventually([] { return ThreadsOfCrews() == 3; }));
  const Relay relay(server.address(), kOneWay);
  const auto far = ConnectTo(relay.address());
  EXPECT_TRUE(Rmse(far).ok());
  ASSERT_EQ(server.observer().windows(WindowClass::kFar), 1);
  EXPECT_TRUE(Rmse(server.Connect()).ok());
  EXPECT_EQ(ThreadsOfCrews(), 3);
}

TEST(SharedQueue, CallsOfBothAreServedBesideEachOtherAndEndWithTheServer) {
  auto server = std::make_unique<TestServer>(ForBoth());
  const Relay relay(server->address(), kOneWay);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&, channel = ConnectTo(i % 2 == 0 ? relay.address() : server->address())] {
      for (int calls = 0; calls < 30; ++calls) EXPECT_TRUE(Rmse(channel).ok());
    });
  for (auto& caller : callers) caller.join();
  EXPECT_GE(server->observer().windows(WindowClass::kFar), 2)
      << "a busy machine may take those near for far, too";
  RawStream near(server->Connect()), far(ConnectTo(relay.address()));
  for (RawStream* stream : {&near, &far}) ASSERT_TRUE(stream->Open(RmseOpen(v1::DTYPE_F32, {1000})));
  server.reset();
  EXPECT_FALSE(near.Drain().ok());
  EXPECT_FALSE(far.Drain().ok());
}

}  // namespace
}  // namespace tilewire::testing

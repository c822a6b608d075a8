// What accounts know of calls that wait: of one peer's connections together, and in sockets.

#include <chrono>
#include <string>

#include "server/rpc/listener/account.h"
#include "server/rpc/listener/connections.h"
#include "tests/integration/doors.h"
#include "tests/integration/helpers.h"
#include "tests/unit/loopback_socket.h"

namespace tilewire::testing {
namespace {

TEST(WaitingCalls, ThoseOfOnePeerKnowOfEachOther) {
  CountingObserver observer;
  rpc::Connections connections({}, &observer);
  const auto peer = [](const std::string& host, int port) {
    return rpc::Peer{.group = host, .name = "ipv4:" + host + ":" + std::to_string(port)};
  };
  const auto of_peer = [&](const rpc::Peer& peer, rpc::Weight weight) {
    return connections.AccountOf(peer.name)->turns[static_cast<size_t>(weight)]->of_peer;
  };
  const auto one = peer("192.0.2.3", 7000), too = peer("192.0.2.3", 7001), other = peer("192.0.2.4", 7000);
  for (const auto& each : {one, too, other}) connections.Add(each, {});
  for (const auto weight : {rpc::Weight::kLight, rpc::Weight::kHeavy}) {
    EXPECT_EQ(of_peer(one, weight), of_peer(too, weight));
    EXPECT_NE(of_peer(one, weight), of_peer(other, weight));
  }
  EXPECT_NE(of_peer(one, rpc::Weight::kLight), of_peer(one, rpc::Weight::kHeavy));
}

TEST(WaitingCalls, TellHowManyCallsNobodyHasRead) {
  CountingObserver observer;
  rpc::Connections connections({}, &observer);
  LoopbackSocket listening;
  listening.Listen();
  const FileDescriptor client = listening.Dial();
  const rpc::Peer peer{.group = "192.0.2.5", .name = "ipv4:192.0.2.5:7000"};
  connections.Add(peer, listening.Accept());
  const auto account = connections.AccountOf(peer.name);
  const auto& light = account->turns[static_cast<size_t>(rpc::Weight::kLight)];
  TimePoint now = Clock::now();
  for (int i = 0; i < 100; ++i) {
    account->calls += 10, account->message_bytes += 10 * 2000;
    (void)connections.CountUnread(now += std::chrono::milliseconds(5));
  }
  EXPECT_EQ(light->unread, 0);
  const std::string calls(50'000, 'x');
  ASSERT_EQ(send(client.get(), calls.data(), calls.size(), 0), std::ssize(calls));
  EXPECT_TRUE(Eventually([&] {
    account->calls += 10, account->message_bytes += 10 * 2000;
    (void)connections.CountUnread(now += std::chrono::milliseconds(5));
    return light->unread >= 20 && light->unread <= 25;
  })) << light->unread;
}

}  // namespace
}  // namespace tilewire::testing

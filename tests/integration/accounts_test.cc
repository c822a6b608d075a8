// What connections cost.
#include "server/rpc/listener/account.h"

#include <set>
#include <string>

#include "server/rpc/listener/connections.h"
#include "tests/integration/doors.h"
#include "tests/integration/helpers.h"
#include "tests/unit/loopback_socket.h"

namespace tilewire::testing {
namespace {

using rpc::Burden;
using rpc::ConnectionAccount;

TEST(Burden, WhatCallsTakeIsNone) {
  Burden burden;
  ConnectionAccount account;
  for (int second = 0; second < 100; ++second) {
    account.calls += 1000;
    account.message_bytes += 64 << 20;
    const uint64_t headers = account.calls * 300, frames = account.message_bytes / 16384 * 9;
    burden.Update(1, account.message_bytes + headers + frames, account);
  }
  EXPECT_EQ(burden.idle_bytes(), 0);
  EXPECT_EQ(burden.failed_calls(), 0);
}

TEST(Burden, WhatNobodyTakesIsAndIsForgottenInTime) {
  Burden burden;
  const ConnectionAccount account;
  burden.Update(0.25, 1 << 20, account);
  EXPECT_EQ(burden.idle_bytes(), 1 << 20);
  burden.Update(10, 1 << 20, account);
  EXPECT_NEAR(burden.idle_bytes(), 1 << 19, 1);
}

TEST(Burden, ThoseWhoWereTurnedAwayAreNotToBlame) {
  Burden burden;
  ConnectionAccount account;
  account.calls = account.requests = 1000;
  account.message_bytes = 4096 * 1000;
  burden.Update(1, 4096 * 1000 + 300'000, account);
  account.calls += 1000, account.failed += 1000, account.turned_away += 1000;
  burden.Update(1, 2 * (4096 * 1000 + 300'000), account);
  EXPECT_LE(burden.idle_bytes(), 300'000) << "their headers";
  account.calls += 10, account.failed += 10, account.turned_away += 10;
  burden.Update(1, 2 * (4096 * 1000 + 300'000) + (10 << 20), account);
  EXPECT_GE(burden.idle_bytes(), 10 << 20) << "no more than what calls bring";
}

TEST(Burden, CallsThatFailPayForTheirHeaders) {
  Burden burden;
  ConnectionAccount account;
  account.calls = account.failed = 1000;
  burden.Update(1, 200'000, account);
  EXPECT_EQ(burden.idle_bytes(), 200'000);
  EXPECT_EQ(burden.failed_calls(), 1000);
  burden.Update(10, 200'000, account);
  EXPECT_NEAR(burden.failed_calls(), 500, 1e-6);
}

TEST(Accounts, APortThatIsUsedTwiceHasOneAccount) {
  CountingObserver observer;
  rpc::Connections connections({}, &observer);
  const rpc::Peer peer{.group = "192.0.2.1", .name = "ipv4:192.0.2.1:5000"};
  const auto first = connections.Add(peer, {});
  const auto account = connections.AccountOf(peer.name);
  EXPECT_NE(account, nullptr);
  const auto second =
      connections.Add(peer, {});  // to another address, or the end of the first is not told yet
  EXPECT_EQ(connections.AccountOf(peer.name), account);
  connections.Remove(first);
  EXPECT_EQ(connections.AccountOf(peer.name), account);
  connections.Remove(second);
  EXPECT_EQ(connections.AccountOf(peer.name), nullptr);
}

/// Nobody looked since the others went.
TEST(Accounts, WhoComesLongAfterIsNotRestrainedForLong) {
  CountingObserver observer;
  rpc::Connections connections({.most_failed_calls = 1000}, &observer);
  const rpc::Peer peer{.group = "192.0.2.1", .name = "ipv4:192.0.2.1:5000"};
  const auto first = connections.Add(peer, {});
  const auto account = connections.AccountOf(peer.name);
  account->begun = account->calls = account->ended = account->failed = 900;
  connections.Remove(first);
  connections.Add(peer, {});
  EXPECT_TRUE(connections.AccountOf(peer.name)->restrained);
  connections.Rest(600);
  connections.Look(0.25);
  EXPECT_FALSE(connections.AccountOf(peer.name)->restrained);
}

TEST(Accounts, TellWhatCameUntilTheLastLook) {
  CountingObserver observer;
  rpc::Connections connections({}, &observer);
  LoopbackSocket listening;
  listening.Listen();
  const FileDescriptor client = listening.Dial();
  FileDescriptor server = listening.Accept();
  const int fd = server.get();
  const rpc::Peer peer{.group = "192.0.2.1", .name = "ipv4:192.0.2.1:5000"};
  connections.Add(peer, std::move(server));
  Pass(client, fd, 50'000);
  EXPECT_EQ(connections.AccountOf(peer.name)->received, 0);
  connections.Look(0.25);
  EXPECT_EQ(connections.AccountOf(peer.name)->received, 50'000);
}

/// Every way in which a call of a client can come to nothing, on a whole server.
TEST(Accounts, CallsThatComeToNothingEndTheirConnection) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  options.rpc.connections.most_failed_calls = 50;
  TestServer server(options);
  const auto honest = server.Connect();
  const auto describe = [&] {
    grpc::ClientContext context;
    v1::DescribeResponse response;
    return v1::Device::NewStub(honest)->Describe(&context, {}, &response).ok();
  };
  ASSERT_TRUE(describe());
  for (const std::string method : {"/tilewire.v1.Kernels/Nope", "/tilewire.v1.Kernels/Rmse"}) {
    const int before = server.observer().ended();
    const auto channel = server.Connect();
    EXPECT_TRUE(Eventually([&] {
      ByteCall(channel, method).Unary("\x0a\x7fshort");
      return server.observer().ended() > before;
    })) << method;
  }
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(describe()) << i;
  // Of the others as many were ended as came again; this one came once.
  std::set<std::string> peers;
  for (const rpc::CallRecord& record : server.observer().records())
    if (record.method == "Device.Describe") peers.insert(record.peer);
  EXPECT_EQ(peers.size(), 1);
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

// What connections cost, and who goes when that is too much.
#include "server/rpc/listener/account.h"

#include <poll.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "server/rpc/listener/connections.h"
#include "server/rpc/listener/memory_watch.h"
#include "tests/integration/doors.h"
#include "tests/integration/helpers.h"
#include "tests/unit/loopback_socket.h"

namespace tilewire::testing {
namespace {

using rpc::Burden;
using rpc::ConnectionAccount;
using rpc::MemoryState;
using rpc::MemoryWatch;

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

TEST(MemoryWatch, TellsWhenItIsShortAndOnceForEachStep) {
  MemoryState state{.resident = 100 << 20, .usable = 800 << 20};
  MemoryWatch watch(400 << 20, [&] { return state; });
  EXPECT_FALSE(watch.Short());
  EXPECT_FALSE(watch.near());
  EXPECT_FALSE(watch.HasGrown());
  state.resident = 300 << 20;
  EXPECT_TRUE(watch.HasGrown()) << "so it is looked at now";
  EXPECT_FALSE(watch.Short());
  EXPECT_FALSE(watch.HasGrown());
  EXPECT_TRUE(watch.near());
  EXPECT_FALSE(watch.over());
  state.resident = 401 << 20;
  EXPECT_TRUE(watch.Short());
  EXPECT_FALSE(watch.Short()) << "what was just shed has not gone yet";
  EXPECT_TRUE(watch.over()) << "so the next look comes at once";
  state.resident = 420 << 20;
  EXPECT_TRUE(watch.Short());
  state.resident = 100 << 20;
  EXPECT_FALSE(watch.Short());
  EXPECT_FALSE(watch.over());
  state.usable = 99 << 20;  // an eighth of what there was
  EXPECT_TRUE(watch.Short()) << "what the system leaves counts too";
}

TEST(MemoryWatch, WhatCannotBeReadIsNotShort) {
  std::optional<MemoryState> state = MemoryState{.resident = 100 << 20, .usable = 800 << 20};
  MemoryWatch watch(400 << 20, [&] { return state; });
  state.reset();
  EXPECT_FALSE(watch.Short());
  state = MemoryState{.resident = 401 << 20, .usable = 800 << 20};
  EXPECT_TRUE(watch.Short());
  state.reset();
  EXPECT_FALSE(watch.Short());
  state = MemoryState{.resident = 401 << 20, .usable = 800 << 20};
  EXPECT_FALSE(watch.Short()) << "what was just shed has not gone yet";
}

/// A listener in a process with as little memory as a test says.
class Shedding : public ::testing::Test {
 protected:
  std::atomic<int64_t> resident_{0};
  Door door_{{.most_failed_calls = 100, .memory_bytes = 1000}, {"127.0.0.1:0"}, [this] {
               return MemoryState{.resident = resident_.load(), .usable = 1 << 30};
             }};

  std::shared_ptr<ConnectionAccount> AccountOf(const FileDescriptor& client) {
    sockaddr_in here{};
    socklen_t bytes = sizeof here;
    EXPECT_EQ(getsockname(client.get(), reinterpret_cast<sockaddr*>(&here), &bytes), 0);
    return door_.listener().AccountOf("ipv4:127.0.0.1:" + std::to_string(ntohs(here.sin_port)));
  }
};

/// Sends and has it read, as gRPC does: no buffer of the system need hold it.
void Pass(const FileDescriptor& from, int to, size_t bytes) {
  std::vector<char> piece(16384);
  for (; bytes > 0; bytes -= std::min(bytes, piece.size())) {
    const auto sent = static_cast<ssize_t>(std::min(bytes, piece.size()));
    ASSERT_EQ(send(from.get(), piece.data(), static_cast<size_t>(sent), MSG_NOSIGNAL), sent);
    for (ssize_t got = 0; got < sent;) {
      pollfd readable{.fd = to, .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&readable, 1, -1), 1);
      const ssize_t n = read(to, piece.data(), static_cast<size_t>(sent - got));
      ASSERT_GT(n, 0);
      got += n;
    }
  }
}

TEST_F(Shedding, EndsThoseThatHoldMost) {
  const auto small = Connect(door_.address()), large = Connect(door_.address()),
             also_large = Connect(door_.address());
  ASSERT_TRUE(door_.Inside(3));
  Pass(small, door_.fd(0), 50'000);
  Pass(large, door_.fd(1), 240'000);
  Pass(also_large, door_.fd(2), 200'000);
  resident_ = 2000;
  EXPECT_TRUE(IsClosed(large));
  EXPECT_TRUE(IsClosed(also_large));
  EXPECT_EQ(door_.observer.ended[static_cast<size_t>(rpc::Ending::kMemory)], 2);
  EXPECT_TRUE(Eventually([&] { return door_.observer.closed == 2; }));
  resident_ = 2000 + (100 << 20);  // still more: but nobody holds anything
  const auto another = Connect(door_.address());
  ASSERT_TRUE(door_.Inside(4));
  EXPECT_EQ(door_.observer.ended[static_cast<size_t>(rpc::Ending::kMemory)], 2);
}

TEST_F(Shedding, EndsWhoseCallsComeToNothing) {
  const auto good = Connect(door_.address()), bad = Connect(door_.address());
  ASSERT_TRUE(door_.Inside(2));
  ASSERT_NE(AccountOf(good), nullptr);
  EXPECT_EQ(door_.listener().AccountOf("unix:"), nullptr);
  AccountOf(good)->calls = 1'000'000;
  AccountOf(bad)->failed = AccountOf(bad)->calls = 102;
  EXPECT_TRUE(IsClosed(bad));
  EXPECT_EQ(door_.observer.ended[static_cast<size_t>(rpc::Ending::kFailedCalls)], 1);
  EXPECT_TRUE(Eventually([&] { return door_.observer.closed == 1; }));
  EXPECT_NE(AccountOf(good), nullptr);
  EXPECT_EQ(AccountOf(bad), nullptr);
}

TEST_F(Shedding, TellsNoMoreOfOneThatItsReaderEnded) {
  const auto bad = Connect(door_.address());
  ASSERT_TRUE(door_.Inside(1));
  const auto account = AccountOf(bad);
  ASSERT_NE(account, nullptr);
  account->end_told = true;
  account->failed = account->calls = 102;
  EXPECT_TRUE(IsClosed(bad));
  EXPECT_TRUE(Eventually([&] { return door_.observer.closed == 1; }));
  EXPECT_EQ(door_.observer.ended[static_cast<size_t>(rpc::Ending::kFailedCalls)], 0);
}

TEST_F(Shedding, EndsThatSendMuchWithoutACall) {
  const auto good = Connect(door_.address()), bad = Connect(door_.address());
  ASSERT_TRUE(door_.Inside(2));
  AccountOf(good)->calls = 1;
  Pass(good, door_.fd(0), 300'000);
  std::vector<char> piece(16384);
  EXPECT_TRUE(Eventually([&] {  // no more than is read
    (void)send(bad.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    while (recv(door_.fd(1), piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
    }
    return door_.observer.ended[static_cast<size_t>(rpc::Ending::kUnasked)] > 0;
  }));
  EXPECT_TRUE(IsClosed(bad));
  EXPECT_EQ(door_.observer.ended[static_cast<size_t>(rpc::Ending::kUnasked)], 1);
  EXPECT_TRUE(Eventually([&] { return door_.observer.closed == 1; }));
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

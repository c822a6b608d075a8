// Who goes when memory runs short, or a connection costs too much.
#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "server/rpc/listener/account.h"
#include "server/rpc/listener/memory_watch.h"
#include "tests/integration/doors.h"

namespace tilewire::testing {
namespace {

using rpc::ConnectionAccount;
using rpc::MemoryState;
using rpc::MemoryWatch;

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
    return door_.listener().AccountOf("ipv4:127.0.0.1:" + std::to_string(PortOf(client, getsockname)));
  }
};

TEST_F(Shedding, EndsThoseThatHoldMost) {
  const auto small = Connect(door_.address()), large = Connect(door_.address()),
             also_large = Connect(door_.address());
  ASSERT_TRUE(door_.Inside(3));
  Pass(small, door_.fd(small), 50'000);
  Pass(large, door_.fd(large), 240'000);
  Pass(also_large, door_.fd(also_large), 200'000);
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

/// Which the listener finds out in between: whose they are it looks at after.
TEST(SheddingAtOnce, EndsWhoseBytesCameJustBefore) {
  std::atomic<int> asked{0};
  std::atomic<int64_t> resident{600};  // near: nothing else asks than whether it is short
  std::function<void()> grows;
  std::atomic<bool> does_grow{false};
  Door door({.memory_bytes = 1000}, {"127.0.0.1:0"}, [&] {
    ++asked;
    if (does_grow.exchange(false)) grows();
    return MemoryState{.resident = resident, .usable = 1 << 30};
  });
  const auto client = Connect(door.address());
  ASSERT_TRUE(door.Inside(1));
  ASSERT_TRUE(Eventually([&, before = asked.load()] { return asked > before + 1; }));
  grows = [&] {
    Pass(client, door.fd(client), 200'000);
    resident = 2000;
  };
  does_grow = true;
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(door.observer.ended[static_cast<size_t>(rpc::Ending::kMemory)], 1);
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
  Pass(good, door_.fd(good), 300'000);
  std::vector<char> piece(16384);
  EXPECT_TRUE(Eventually([&] {  // no more than is read
    (void)send(bad.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    while (recv(door_.fd(bad), piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
    }
    return door_.observer.ended[static_cast<size_t>(rpc::Ending::kUnasked)] > 0;
  }));
  EXPECT_TRUE(IsClosed(bad));
  EXPECT_EQ(door_.observer.ended[static_cast<size_t>(rpc::Ending::kUnasked)], 1);
  EXPECT_TRUE(Eventually([&] { return door_.observer.closed == 1; }));
}

}  // namespace
}  // namespace tilewire::testing

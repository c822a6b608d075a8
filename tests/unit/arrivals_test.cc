// Connections that wait for the answer by which they are measured: over socket pairs, of which TCP knows no
// distance.
#include "server/rpc/listener/arrivals.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "server/rpc/listener/round_trip.h"
#include "server/rpc/listener/tcp_facts.h"
#include "tests/unit/loopback_socket.h"
#include "tests/unit/waiting.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWait{400};
const std::string kGreeting = SettingsFrame({});
const std::string kUnanswered = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame({});
const std::string kAnswer = std::string("\0\0\0\4\1\0\0\0\0", 9);

class ArrivalsTest : public ::testing::Test {
 protected:
  /// A new connection; returns its client's end.
  FileDescriptor Arrive(Arrivals::Id id) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    FileDescriptor client(ends[0]);
    EXPECT_TRUE(arrivals_.Begin(id, FileDescriptor(ends[1]))) << "it is asked";
    return client;
  }
  static void Send(const FileDescriptor& client, const std::string& bytes) {
    EXPECT_EQ(send(client.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  /// As a listener that waited until then.
  std::vector<Arrivals::Id> GiveUp(TimePoint now) { return arrivals_.GiveUp(now, now); }

  ConnectionObserver nobody_;
  std::map<Arrivals::Id, Clock::duration> round_trips_;  ///< of those who were measured
  std::map<Arrivals::Id, int64_t> windows_;
  int handed_over_ = 0;
  Arrivals arrivals_{{.wide_bytes = 1 << 30, .greeting = kGreeting},
                     kWait,
                     [this](const FileDescriptor&, Entrance by) { handed_over_ += by.beyond ? 1 : 0; },
                     [this](Arrivals::Id id, Clock::duration round_trip, int64_t window) {
                       round_trips_[id] = round_trip;
                       windows_[id] = window;
                     },
                     &nobody_};
};

TEST_F(ArrivalsTest, WaitForTheAnswer) {
  const FileDescriptor client = Arrive(1);
  EXPECT_FALSE(arrivals_.Came(1, Clock::now())) << "nothing came";
  Send(client, kUnanswered);
  EXPECT_FALSE(arrivals_.Came(1, Clock::now())) << "no answer";
  EXPECT_TRUE(arrivals_.waiting(1));
  EXPECT_EQ(handed_over_, 0);
  Send(client, kAnswer);
  EXPECT_TRUE(arrivals_.Came(1, Clock::now()));
  EXPECT_EQ(handed_over_, 1);
  EXPECT_GT(round_trips_.at(1), Clock::duration::zero());
  EXPECT_FALSE(arrivals_.waiting(1));
  EXPECT_FALSE(arrivals_.Came(1, Clock::now())) << "it is handed over once";
  EXPECT_EQ(handed_over_, 1);
}

TEST_F(ArrivalsTest, DoNotWaitForEver) {
  const auto begun = Clock::now();
  const FileDescriptor silent = Arrive(1), other = Arrive(2);
  Send(other, kUnanswered);
  EXPECT_TRUE(arrivals_.GiveUp(begun, begun).empty());
  EXPECT_EQ(handed_over_, 0);
  EXPECT_EQ(GiveUp(Clock::now() + kWait).size(), 2U);
  EXPECT_EQ(handed_over_, 2);
  for (const Arrivals::Id id : {1, 2}) EXPECT_EQ(windows_.at(id), 0) << "as far as TCP says";
  EXPECT_TRUE(GiveUp(Clock::now() + 2 * kWait).empty());
}

/// The server's own thread was kept from looking.
TEST_F(ArrivalsTest, TakeAnAnswerThatNobodyLookedFor) {
  const FileDescriptor client = Arrive(1);
  Send(client, kUnanswered + kAnswer);
  EXPECT_EQ(GiveUp(Clock::now() + kWait).size(), 1U);
  EXPECT_EQ(handed_over_, 1);
  EXPECT_GE(round_trips_.at(1), kWait);
  EXPECT_EQ(windows_.at(1), kMostWideBytes);
}

TEST(CameAt, IsAsLateAsIsKnown) {
  const TimePoint start = TimePoint() + std::chrono::hours(1);
  const auto at = [&](int ms) { return start + milliseconds(ms); };
  EXPECT_EQ(CameAt(at(40), at(40), milliseconds(0)), at(40)) << "the listener waited for it";
  EXPECT_EQ(CameAt(at(40), at(40), milliseconds(19)), at(40)) << "kernels count in ticks";
  EXPECT_EQ(CameAt(at(1), at(3), milliseconds(0)), at(1)) << "the listener saw to others";
  EXPECT_EQ(CameAt(at(1), at(31), milliseconds(4)), at(23)) << "it did for long: the kernel knows better";
  EXPECT_EQ(CameAt(at(450), at(450), milliseconds(400)), at(46)) << "it stood still: 50, less a tick";
}

/// The listener's thread saw to others meanwhile, for all it knows.
TEST_F(ArrivalsTest, AreNoFartherThanIsKnown) {
  const auto before = Clock::now();
  const FileDescriptor client = Arrive(1);
  Send(client, kUnanswered + kAnswer);
  EXPECT_TRUE(arrivals_.Came(1, before));
  EXPECT_EQ(handed_over_, 1);
  const auto all = Clock::now() - before;
  EXPECT_LE(round_trips_.at(1), std::max(Clock::duration{}, all - milliseconds(4))) << "less a tick";
}

TEST(SinceReceived, IsCountedOfTcpAlone) {
  testing::LoopbackSocket listening;
  listening.Listen();
  const FileDescriptor client = listening.Dial(), server = listening.Accept();
  ASSERT_EQ(send(client.get(), "x", 1, 0), 1);
  EXPECT_TRUE(testing::Eventually([&] { return SinceReceived(server.get()) >= milliseconds(50); }));
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const FileDescriptor one(ends[0]), other(ends[1]);
  EXPECT_EQ(SinceReceived(one.get()), Clock::duration::zero());
}

TEST_F(ArrivalsTest, DoNotWaitForOtherProtocols) {
  const FileDescriptor client = Arrive(1);
  Send(client, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(arrivals_.Came(1, Clock::now()));
  EXPECT_EQ(windows_.at(1), 0);
}

TEST_F(ArrivalsTest, ForgetThoseWhoEnd) {
  const FileDescriptor client = Arrive(1);
  arrivals_.Ended(1);
  EXPECT_FALSE(arrivals_.waiting(1));
  EXPECT_TRUE(GiveUp(Clock::now() + kWait).empty());
  char byte = 0;
  std::string greeting(kGreeting.size(), '\0');
  EXPECT_EQ(recv(client.get(), greeting.data(), greeting.size(), MSG_WAITALL),
            static_cast<ssize_t>(greeting.size()));
  EXPECT_EQ(recv(client.get(), &byte, 1, 0), 0) << "it is closed";
}

}  // namespace
}  // namespace tilewire::rpc

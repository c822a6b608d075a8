// The door by itself: who gets in, who is sent away, and that it never goes deaf. No gRPC behind it.
#include "server/rpc/listener/listener.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <cerrno>

#include "tests/integration/doors.h"

namespace tilewire::testing {
namespace {

int Option(int fd, int level, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  EXPECT_EQ(getsockopt(fd, level, option, &value, &bytes), 0);
  return value;
}

TEST(Listener, HandsOverConnectionsReadyForGrpc) {
  Door door;
  const auto client = Connect(door.address());
  ASSERT_TRUE(door.Inside(1));
  const int fd = door.fd(0);
  EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(Option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(Option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_GT(Option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  EXPECT_EQ(door.observer.opened, 1);
  EXPECT_EQ(door.observer.closed, 0);
  door.End(0);
  EXPECT_TRUE(IsClosed(client)) << "the second descriptor keeps nothing open";
  EXPECT_TRUE(Eventually([&] { return door.observer.closed == 1; }));
}

TEST(Listener, SeesPeersThatResetTheirConnection) {
  Door door;
  auto client = Connect(door.address());
  ASSERT_TRUE(door.Inside(1));
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  client.Reset();
  EXPECT_TRUE(Eventually([&] { return door.observer.closed == 1; }));
}

TEST(Listener, ClosesWhatIsOverTheLimitAtOnce) {
  Door door({.most = 3, .most_per_peer = 2});
  const auto a = Connect(door.address()), b = Connect(door.address());
  ASSERT_TRUE(door.Inside(2));
  const auto c = Connect(door.address());
  EXPECT_TRUE(IsClosed(c));
  EXPECT_EQ(door.observer.Refused(Refusal::kPeer), 1);
  const auto other = Connect(door.address(), "127.0.0.2");
  ASSERT_TRUE(door.Inside(3)) << "one peer does not keep another out";
  EXPECT_TRUE(IsClosed(Connect(door.address(), "127.0.0.2")));
  EXPECT_EQ(door.observer.Refused(Refusal::kFull), 1);
  EXPECT_EQ(door.observer.opened, 3);

  door.End(0);
  ASSERT_TRUE(Eventually([&] { return door.observer.closed == 1; }));
  const auto again = Connect(door.address());
  EXPECT_TRUE(door.Inside(4)) << "a place that is free is given away";
}

TEST(Listener, IsNeverTooFullForTheServerItself) {
  const std::string path = ::testing::TempDir() + "door-own-" + std::to_string(getpid()) + ".sock";
  Door door({.most = 1, .most_per_peer = 1}, {"127.0.0.1:0", "unix:" + path});
  const auto a = Connect(door.address());
  ASSERT_TRUE(door.Inside(1));
  EXPECT_TRUE(IsClosed(Connect(door.address())));
  auto dials = door.listener().DialAll();
  ASSERT_TRUE(dials.has_value());
  EXPECT_EQ(dials->size(), 2u);
  EXPECT_TRUE(door.Inside(3));
  EXPECT_EQ(door.observer.opened, 1) << "nor is it told of";
  EXPECT_EQ(door.beyond(), 1) << "the server need not show itself a certificate, nor unix sockets speak TLS";
}

TEST(Listener, TheServerItselfTakesNobodysPlace) {
  Door door({.most = 1, .most_per_peer = 1});
  const auto dials = door.listener().DialAll();
  ASSERT_TRUE(dials.has_value());
  ASSERT_TRUE(door.Inside(1));
  const auto client = Connect(door.address());
  EXPECT_TRUE(door.Inside(2));
  EXPECT_TRUE(IsClosed(Connect(door.address())));
  EXPECT_EQ(door.observer.Refused(Refusal::kFull), 1);
  door.End(0);
  door.End(1);
  EXPECT_TRUE(Eventually([&] { return door.observer.closed == 1; }));
  const auto again = Connect(door.address());
  EXPECT_TRUE(door.Inside(3));
  EXPECT_TRUE(IsClosed(Connect(door.address()))) << "there is one place, as before";
  EXPECT_EQ(door.observer.opened, 2);
}

/// The limit of open files while it lives, and everything up to it taken.
class NoDescriptors {
 public:
  explicit NoDescriptors(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = limit;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all_.emplace_back(fd);
    EXPECT_EQ(errno, EMFILE);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  void GiveBack() { all_.clear(); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> all_;
};

TEST(Listener, HearsAgainAfterDescriptorsRanOut) {
  Door door;
  {
    // UBSan needs two descriptors when it first looks at an object's type, so the listener's thread must be
    // running.
    const auto known = Connect(door.address());
    ASSERT_TRUE(door.Inside(1));
    door.End(0);
    ASSERT_TRUE(Eventually([&] { return door.observer.closed == 1; }));
  }
  FileDescriptor first(socket(AF_INET, SOCK_STREAM, 0)), second(socket(AF_INET, SOCK_STREAM, 0));
  NoDescriptors none(256);
  EXPECT_TRUE(IsClosed(Connect(door.address(), "127.0.0.1", std::move(first)))) << "not left in the backlog";
  EXPECT_TRUE(IsClosed(Connect(door.address(), "127.0.0.1", std::move(second))));
  EXPECT_TRUE(Eventually([&] { return door.observer.Refused(Refusal::kDescriptors) == 2; }));
  EXPECT_EQ(door.observer.opened, 1);
  none.GiveBack();
  const auto client = Connect(door.address());
  EXPECT_TRUE(door.Inside(2));
}

TEST(Listener, LeavesAReserveOfDescriptors) {
  // A limit of 256 reserves 64, half of which the listener itself may not touch whatever --max-connections
  // says.
  const ConnectionLimits wide = rpc::WithDefaults({.most = 100'000}, 256);
  EXPECT_EQ(wide.most, 96);
  EXPECT_EQ(wide.most_per_peer, 48);
  EXPECT_EQ(rpc::WithDefaults({}, 1 << 20).most, rpc::kMostConnectionsByDefault);
  EXPECT_EQ(rpc::WithDefaults({.most = 7, .most_per_peer = 9}, 1 << 20).most_per_peer, 9);
}

TEST(Listener, TakesNobodyInAfterStop) {
  Door door;
  const auto client = Connect(door.address());
  ASSERT_TRUE(door.Inside(1));
  door.listener().Stop();
  const FileDescriptor late(socket(AF_INET, SOCK_STREAM, 0));
  const auto there = V4("127.0.0.1", PortOf(door.address()));
  EXPECT_NE(connect(late.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  EXPECT_EQ(door.observer.opened, 1);
  EXPECT_EQ(door.observer.closed, 0) << "who is in stays";
  door.listener().Drop();
  EXPECT_EQ(door.observer.closed, 1);
}

}  // namespace
}  // namespace tilewire::testing

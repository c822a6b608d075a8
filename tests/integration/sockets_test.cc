// What listens where: ports that are picked or taken, socket files of servers that live or do not; names of
// peers.
#include "server/rpc/listener/sockets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/un.h>

#include "tests/integration/doors.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;

TEST(Sockets, OneHostOnePort) {
  Door door({}, {"localhost:0"});
  EXPECT_FALSE(door.address().ends_with(":0")) << door.address();
  auto dials = door.listener().DialAll();  // one for each family that the host has
  ASSERT_TRUE(dials.has_value());
  EXPECT_TRUE(door.Inside(dials->size()));
}

TEST(Sockets, ListensOnWhatOthersLeaveOfAHost) {
  const std::vector<std::string> hosts{"127.0.0.1", "127.0.0.2"};
  const auto both = rpc::ListenOn("two.invalid:0", hosts);
  ASSERT_TRUE(both.has_value()) << both.error().ToString();
  EXPECT_EQ(both->sockets().size(), 2u);
  EXPECT_EQ(both->left_out(), "");
  Door first;  // of one address
  const std::string address = "two.invalid:" + std::to_string(PortOf(first.address()));
  const auto rest = rpc::ListenOn(address, hosts);
  ASSERT_TRUE(rest.has_value()) << rest.error().ToString();
  EXPECT_EQ(rest->address(), address);
  EXPECT_EQ(rest->sockets().size(), 1u);
  EXPECT_EQ(rest->left_out(), "127.0.0.1: it is taken");
  const auto none = rpc::ListenOn(address, hosts);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().reason(), "CANNOT_LISTEN");
  EXPECT_THAT(std::string(none.error().message()), HasSubstr(address + ": it is taken"));
}

TEST(Sockets, AWildcardIsForBothFamilies) {
  Door door({}, {"0.0.0.0:0"});
  EXPECT_TRUE(door.address().starts_with("0.0.0.0:")) << door.address();
  const auto v4 = Connect(door.address());
  EXPECT_TRUE(door.Inside(1));
}

TEST(Sockets, BlamesTheAddressThatIsTaken) {
  Door first;
  CountingObserver observer;
  const auto second = Listener::Open({"127.0.0.1:0", first.address(), "127.0.0.2:0"}, {}, &observer);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().reason(), "CANNOT_LISTEN");
  EXPECT_THAT(std::string(second.error().message()), HasSubstr(first.address() + ": it is taken"));
  const auto unknown = Listener::Open({"no-such-host.invalid:1"}, {}, &observer);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(std::string(unknown.error().message()), HasSubstr("no-such-host.invalid:1"));
}

TEST(Sockets, TakesNoUnixSocketFromAServerThatLives) {
  const std::string path = ::testing::TempDir() + "door-" + std::to_string(getpid()) + ".sock";
  CountingObserver observer;
  {
    Door first({}, {"unix:" + path});
    const auto second = Listener::Open({"unix:" + path}, {}, &observer);
    ASSERT_FALSE(second.has_value());
    EXPECT_THAT(std::string(second.error().message()),
                HasSubstr("unix:" + path + ": another server answers"));
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    EXPECT_TRUE(first.Inside(1)) << "it still listens: the second server's question came in";
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "it takes its file with it";

  // What a server that was killed leaves behind.
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  {
    const FileDescriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  ASSERT_EQ(access(path.c_str(), F_OK), 0);
  Door door({}, {"unix:" + path});
  auto dials = door.listener().DialAll();
  ASSERT_TRUE(dials.has_value());
  EXPECT_TRUE(door.Inside(1));
}

TEST(Sockets, LeavesAloneWhatIsNoSocketAndWhatIsAnothersByNow) {
  const std::string path = ::testing::TempDir() + "door-file-" + std::to_string(getpid());
  CountingObserver observer;
  close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_FALSE(Listener::Open({"unix:" + path}, {}, &observer).has_value());
  EXPECT_EQ(unlink(path.c_str()), 0);
  {
    Door door({}, {"unix:" + path});
    EXPECT_EQ(unlink(path.c_str()), 0);
    close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  }
  EXPECT_EQ(unlink(path.c_str()), 0) << "a file that it did not make";
}

TEST(Peer, PortsInARowHavePlacesOfTheirOwn) {
  for (const int first : {40000, 40001}) {  // of one parity, as systems choose them
    std::set<size_t> slots;
    for (int i = 0; i < 64; ++i)
      slots.insert(rpc::PeerSlot("ipv4:127.0.0.1:" + std::to_string(first + 2 * i), 64));
    EXPECT_EQ(slots.size(), 64u);
    EXPECT_LT(*slots.rbegin(), 64u);
  }
  for (const char* const odd : {"", "1", "12", "\xff\xff\xff"}) EXPECT_LT(rpc::PeerSlot(odd, 64), 64u);
}

TEST(Peer, NamesAreThoseOfGrpc) {
  using rpc::PeerName, rpc::PeerOf;
  EXPECT_EQ(PeerName("ipv4:127.0.0.1:4000"), "ipv4:127.0.0.1:4000");
  EXPECT_EQ(PeerName("ipv6:%5B::1%5D:4000"), "ipv6:[::1]:4000");
  EXPECT_EQ(PeerName("ipv6:%5Bfe80::1%252%5D:4000"), "ipv6:[fe80::1]:4000");
  EXPECT_EQ(PeerName("unix:"), "unix:");
  EXPECT_EQ(PeerName("%"), "%");
  using rpc::PeerGroup;
  EXPECT_EQ(PeerGroup("ipv4:127.0.0.1:4000"), "127.0.0.1");
  EXPECT_EQ(PeerGroup("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:4000"), "2001:db8:1:2::/64");
  EXPECT_EQ(PeerGroup("ipv6:%5Bfe80::1%252%5D:4000"), "fe80::/64");
  EXPECT_EQ(PeerGroup("ipv6:%5B::ffff:10.0.0.1%5D:4000"), "10.0.0.1");
  EXPECT_EQ(PeerGroup("unix:"), "unix");
  EXPECT_EQ(PeerGroup("ipv4:"), "ipv4");
  EXPECT_EQ(PeerGroup(""), "");
  for (int round = 0; round < 2; ++round)  // more than are kept of any port's end
    for (int i = 0; i < 300; ++i) {
      const std::string host = "10.0.0." + std::to_string(i % 7),
                        name = "ipv4:" + host + ":" + std::to_string(i);
      EXPECT_EQ(PeerName(name), name);
      EXPECT_EQ(PeerGroup(name), host);
    }
  sockaddr_storage storage{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(7);
  inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", &v6.sin6_addr);
  EXPECT_EQ(PeerOf(-1, storage).group, "2001:db8:1:2::/64");
  EXPECT_EQ(PeerOf(-1, storage).name, "ipv6:[2001:db8:1:2:3:4:5:6]:7");
  inet_pton(AF_INET6, "::ffff:10.0.0.1", &v6.sin6_addr);
  EXPECT_EQ(PeerOf(-1, storage).group, "10.0.0.1");
  EXPECT_EQ(PeerOf(-1, storage).name, "ipv4:10.0.0.1:7");
}

}  // namespace
}  // namespace tilewire::testing

// Connections of a whole server: which are closed and when, what is told of them, and that calls notice
// nothing.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "server/rpc/listener/file_descriptor.h"
#include "tests/integration/helpers.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

size_t OpenFiles() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// A TCP connection to 127.0.0.1 that sends nothing by itself.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
    constexpr timeval kPatience{.tv_sec = 60, .tv_usec = 0};
    for (const int way : {SO_RCVTIMEO, SO_SNDTIMEO})
      setsockopt(fd_.get(), SOL_SOCKET, way, &kPatience, sizeof kPatience);
  }
  void Send(const std::string& bytes) {
    EXPECT_EQ(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// The same where the server may have closed it.
  void TrySend(const std::string& bytes) { (void)send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  /// Reads until the server closes it.
  void WaitForEnd() {
    char buffer[4096];
    ssize_t got = 0;
    while ((got = read(fd_.get(), buffer, sizeof buffer)) > 0) {
    }
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "it stays";
  }
  bool Closed() {
    char byte = 0;
    return recv(fd_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }

 private:
  rpc::FileDescriptor fd_;
};

const std::string kPreface =
    std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);

TestServer::Options OnLoopback() {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  return options;
}

TEST(Connections, NothingIsLeftOfThem) {
  ExpectGoodCalls(TestServer(OnLoopback()));  // what gRPC opens once
  const size_t before = OpenFiles();
  {
    TestServer server(OnLoopback());
    ExpectGoodCalls(server);
    RawConnection silent(server.address());
    ASSERT_TRUE(Eventually([&] { return server.observer().opened() >= 2; }));
    server.ExpectIdle();
    server.rpc().Shutdown(Clock::now());
    EXPECT_EQ(server.observer().opened(), server.observer().closed());
  }
  EXPECT_TRUE(Eventually([&] { return OpenFiles() <= before; })) << OpenFiles() << " of " << before;
}

TEST(Connections, EndsAreSeen) {
  TestServer server(OnLoopback());
  ExpectGoodCalls(server);  // on a connection that goes with it
  EXPECT_TRUE(Eventually([&] { return server.observer().opened() == server.observer().closed(); }));
  EXPECT_GE(server.observer().opened(), 1);
}

TEST(Connections, WhoDoesNotBeginHttp2IsClosed) {
  auto options = OnLoopback();
  options.rpc.connections.handshake_seconds = 0.1;
  TestServer server(options);
  RawConnection silent(server.address()), half(server.address());
  half.Send(kPreface.substr(0, 10));
  silent.WaitForEnd();
  half.WaitForEnd();
  EXPECT_TRUE(Eventually([&] { return server.observer().closed() == 2; }));
}

/// gRPC reads all of it anew with each frame, on whatever thread it was handed over by, for as long as it
/// goes on.
TEST(Connections, WhoNeverEndsAHeaderIsClosed) {
  TestServer server(OnLoopback());
  const auto frame = [](int type, int stream, const std::string& payload) {
    std::string bytes;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift & 0xff);
    bytes += static_cast<char>(type);
    bytes += '\0';  // of a header block: more follows
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(stream >> shift & 0xff);
    return bytes + payload;
  };
  RawConnection endless(server.address());
  // A literal of one letter, and a value of 2^30 bytes (RFC 7541, 5.1 and 6.2.2).
  endless.Send(kPreface + frame(1, 1, std::string("\0\1a\x7f\x81\xff\xff\xff\x03", 9)));
  const std::string more = frame(9, 1, std::string(16384, 'a'));
  EXPECT_TRUE(Eventually([&] {
    endless.TrySend(more);
    return server.observer().ended() == 1;
  }));
  ExpectGoodCalls(server);
}

TEST(Connections, WithoutCallsTheyAreClosedAndComeBack) {
  auto options = OnLoopback();
  options.rpc.connections.idle_seconds = 0.5;
  TestServer server(options);
  RawStream busy(server.Connect());
  ASSERT_TRUE(busy.Open(TransposeOpen(v1::DTYPE_F32, {64})));
  RawConnection idle(server.address());
  idle.Send(kPreface);
  const auto channel = server.Connect();
  idle.WaitForEnd();  // it takes as long as busy's connection would have got
  EXPECT_TRUE(Eventually([&] { return channel->GetState(false) != GRPC_CHANNEL_READY; }));
  grpc::ClientContext context;
  v1::DescribeResponse response;
  context.set_wait_for_ready(true);
  EXPECT_TRUE(v1::Device::NewStub(channel)->Describe(&context, {}, &response).ok())
      << "the client dials again";
  const std::string data = Floats(64, 1);
  EXPECT_TRUE(busy.SendAll(0, data));
  EXPECT_TRUE(busy.End().ok()) << "who has a call keeps the connection";
  ExpectUnharmed(server);
}

TEST(Connections, UnixSocketsTooAreClosedWhenIdle) {
  const std::string path = ::testing::TempDir() + "idle-" + std::to_string(getpid()) + ".sock";
  auto options = OnLoopback();
  options.rpc.listen = {"unix:" + path};
  options.rpc.connections.idle_seconds = 0.5;
  TestServer server(options);
  const auto channel = server.Connect();
  EXPECT_TRUE(Eventually([&] { return channel->GetState(false) != GRPC_CHANNEL_READY; }));
  ExpectUnharmed(server);
}

TEST(Connections, OverTheLimitTheyAreClosedAndTheRestGoesOn) {
  auto options = OnLoopback();
  options.rpc.connections.most = 2;
  options.rpc.connections.most_per_peer = 2;
  TestServer server(options);
  RawStream busy(server.Connect());
  ASSERT_TRUE(busy.Open(TransposeOpen(v1::DTYPE_F32, {64})));
  {
    RawConnection second(server.address());
    ASSERT_TRUE(Eventually([&] { return server.observer().opened() - server.observer().closed() >= 2; }));
    for (int i = 0; i < 50; ++i) RawConnection(server.address()).WaitForEnd();
    EXPECT_GE(server.observer().refused(), 50);
    EXPECT_FALSE(second.Closed());
    EXPECT_TRUE(busy.SendAll(0, Floats(64, 1)));
    EXPECT_TRUE(busy.End().ok());
  }
  ExpectUnharmed(server);
}

/// D1: more connections than there are descriptors, and what is left when they have gone.
TEST(Connections, MoreThanDescriptorsDoNotMakeItDeaf) {
  const std::string path = ::testing::TempDir() + "flood-" + std::to_string(getpid()) + ".sock";
  Program program("/bin/sh",
                  {"-c", "ulimit -n 1024; exec \"$0\" \"$@\"", TILEWIRE_TILEWIRED, "--device", "cpu",
                   "--listen", "127.0.0.1:0", "--listen", "unix:" + path, "--metrics-listen", "127.0.0.1:0",
                   "--device-bytes", "64MiB", "--handshake-seconds", "600"});
  const auto addresses = program.Ready(2);
  const std::string metrics = program.MetricsAddress();
  const auto describe = [](const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::DescribeResponse response;
    return v1::Device::NewStub(channel)->Describe(&context, {}, &response).error_code();
  };
  const auto works = [&](const std::string& address) {
    return describe(ConnectTo(address)) == grpc::StatusCode::OK;
  };
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 1400) GTEST_SKIP() << "too few open files for an attacker";
  {
    std::vector<std::unique_ptr<RawConnection>> flood;
    for (int i = 0; i < 1300; ++i) flood.push_back(std::make_unique<RawConnection>(addresses[0]));
    EXPECT_TRUE(Eventually([&] {
      return SumOfMetric(metrics, "tilewire_connections ") +
                 SumOfMetric(metrics, "tilewire_connections_refused_total") >=
             1300;
    }));
    EXPECT_LT(SumOfMetric(metrics, "tilewire_process_open_fds"), 1024 - 64);
    EXPECT_TRUE(works(addresses[1])) << "others get in beside them";
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    EXPECT_EQ(describe(grpc::CreateCustomChannel(addresses[0], grpc::InsecureChannelCredentials(), own)),
              grpc::StatusCode::UNAVAILABLE)
        << "one who is over the limit hears of it at once, and not by a deadline";
  }
  EXPECT_TRUE(Eventually([&] { return works(addresses[0]); }));
  EXPECT_TRUE(Eventually([&] { return SumOfMetric(metrics, "tilewire_connections ") <= 2; }));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
}

}  // namespace
}  // namespace tilewire::testing

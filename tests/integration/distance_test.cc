// Connections from afar: which windows they get, that answers are the same there, and that what holds for all
// connections holds for them.
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "client/cpp/client.h"
#include "server/rpc/transport/transport.h"
#include "tests/bench/relay.h"
#include "tests/integration/doors.h"
#include "tests/integration/helpers.h"
#include "tests/integration/program.h"
#include "tests/unit/loopback_socket.h"

namespace tilewire::testing {
namespace {

using bench::Relay;
using rpc::WindowClass;

/// Each way: so the round trip is one of the far, however slow the machine is.
constexpr std::chrono::milliseconds kOneWay{10};
constexpr int64_t kSlowLine = 20'000'000;  ///< bytes a second: for 32 MiB further connections come in time
/// Memory for that many bytes of places.
constexpr int64_t MemoryFor(int64_t places) {
  return (places / 45 + 1) * 64;
}

/// Plenty for as many far connections, whatever their distance.
TestServer::Options FarToo(int connections) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  options.rpc.receive.distance_bytes = MemoryFor((connections + 3) * rpc::PlaceBytes(rpc::kMostWideBytes));
  options.rpc.connections.acknowledge_within = std::chrono::minutes(1);  // for a machine that stands still
  return options;
}

std::string LargeRmse(const std::shared_ptr<grpc::Channel>& channel, const std::string& a,
                      const std::string& b) {
  RawStream stream(channel);
  const auto count = static_cast<int64_t>(a.size() / 4);
  EXPECT_TRUE(stream.Open(RmseOpen(v1::DTYPE_F32, {count})));
  EXPECT_TRUE(stream.SendAll(0, a));
  EXPECT_TRUE(stream.SendAll(1, b));
  const grpc::Status status = stream.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return stream.output;
}

client::ArraySource SourceOf(const std::string& bytes) {
  const std::array<int64_t, 1> shape{static_cast<int64_t>(bytes.size() / 4)};
  return client::ArraySource::FromMemory(MakeSpec(DType::kF32, shape).value(), bytes.data());
}

/// What grpc.health.v1 says of "readiness" on that connection: 1 serving, 2 not.
int Readiness(const std::shared_ptr<grpc::Channel>& channel) {
  const auto reply = ByteCall(channel, "/grpc.health.v1.Health/Check").Unary("\x0a\x09readiness");
  EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
  return reply.bytes.size() == 2 ? reply.bytes[1] : 0;
}

TEST(Distance, FromAfarWindowsAreWideAndAnswersTheSame) {
  TestServer server(FarToo(2));
  const Relay relay(server.address(), kOneWay);
  const auto far = ConnectTo(relay.address());
  const std::string a = Floats(1 << 20, 1), b = Floats(1 << 20, 2);
  const std::string expected = HostRmse(a, b, DType::kF32, {1 << 20});
  EXPECT_TRUE(LargeRmse(far, a, b) == expected);
  EXPECT_TRUE(LargeRmse(far, b, a) == expected);
  EXPECT_EQ(server.observer().windows(WindowClass::kFar), 1);
  EXPECT_EQ(server.observer().narrowed(), 0);
  EXPECT_TRUE(LargeRmse(server.Connect(), a, b) == expected);
  EXPECT_EQ(server.observer().windows(WindowClass::kFar) + server.observer().windows(WindowClass::kMiddle) +
                server.observer().windows(WindowClass::kNear),
            2);
  ExpectUnharmed(server);
}

TEST(Distance, OurClientsGetThereToo) {
  TestServer server(FarToo(4));
  const Relay relay(server.address(), kOneWay);
  auto client = client::Client::Connect(relay.address());
  const std::string a = Floats(1 << 20, 3), b = Floats(1 << 20, 4);
  client::CallOptions options;
  options.connections = 3;
  const auto reply = client.Rmse(SourceOf(a), SourceOf(b), {}, options);
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  double expected = 0;
  memcpy(&expected, HostRmse(a, b, DType::kF32, {1 << 20}).data(), sizeof expected);
  EXPECT_EQ(reply->values.front(), expected);
  EXPECT_GE(server.observer().windows(WindowClass::kFar), 1);
}

TEST(Distance, IsToldInTheTiming) {
  TestServer server(FarToo(8));
  const Relay relay(server.address(), kOneWay, kSlowLine);
  const std::string a = Floats(4 << 20, 3);
  const auto source = SourceOf(a);
  auto client = client::Client::Connect(relay.address());
  const auto reply = client.Rmse(source, source);  // 32 MiB: one connection, unasked, if the server were near
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  const client::Timing& timing = reply->reply.timing;
  EXPECT_GE(reply->reply.round_trip_us, 20'000) << "asked for, because it decides on connections";
  EXPECT_GE(timing.streams, 2u) << "up to 4; who comes when all is sent is done without";
  ASSERT_TRUE(timing.round_trip_us && timing.window_share);
  EXPECT_GE(*timing.round_trip_us, 10'000) << "at the least, as the listener knows it";
  EXPECT_GT(*timing.window_share, 0);
  EXPECT_LE(*timing.window_share, 1);
  const auto near = client::Client::Connect(server.address()).Rmse(source, source);
  ASSERT_TRUE(near.has_value()) << near.error().ToString();
  EXPECT_GT(near->reply.timing.round_trip_us.value_or(0), 0);
}

/// A forwarded port: the server's own addresses lead nowhere from where its clients are.
TEST(Distance, FurtherConnectionsGoWhereTheFirstGotThrough) {
  TestServer::Options options = FarToo(4);
  const LoopbackSocket nobody;
  options.rpc.advertise = {nobody.address()};
  TestServer server(options);
  const Relay relay(server.address(), kOneWay, kSlowLine);
  const std::string a = Floats(4 << 20, 3);
  client::CallOptions call;
  call.connections = 3;
  const auto reply = client::Client::Connect(relay.address()).Rmse(SourceOf(a), SourceOf(a), {}, call);
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(reply->values.front(), 0);
  EXPECT_GE(reply->reply.timing.streams, 2u) << "who comes when all is sent is done without";
}

TEST(Distance, AConnectionCarriesSeveralStreams) {
  TestServer server(FarToo(2));
  const Relay relay(server.address(), kOneWay);
  const auto far = ConnectTo(relay.address());
  std::vector<std::unique_ptr<RawStream>> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(std::make_unique<RawStream>(far));
    ASSERT_TRUE(streams.back()->Open(TransposeOpen(v1::DTYPE_F32, {1000})));
  }
  const std::string a = Floats(1000, 1);
  for (const auto& stream : streams) {
    ASSERT_TRUE(stream->SendAll(0, a));
    EXPECT_TRUE(stream->End().ok());
    EXPECT_TRUE(stream->output == a);
  }
  EXPECT_EQ(server.observer().windows(WindowClass::kFar), 1);
}

TEST(Distance, PlacesRunOutAndComeBack) {
  auto options = FarToo(0);
  options.rpc.receive.distance_bytes = MemoryFor(rpc::PlaceBytes(rpc::kLeastFarBytes));
  TestServer server(options);
  const Relay relay(server.address(), kOneWay);
  const std::string a = Floats(1 << 18, 1), b = Floats(1 << 18, 2);
  const std::string expected = HostRmse(a, b, DType::kF32, {1 << 18});
  auto first = ConnectTo(relay.address());
  EXPECT_TRUE(LargeRmse(first, a, b) == expected);
  auto second = ConnectTo(relay.address());
  EXPECT_TRUE(LargeRmse(second, a, b) == expected) << "slower, but right";
  EXPECT_EQ(server.observer().windows(WindowClass::kMiddle), 1) << "the only place, and the least of windows";
  EXPECT_EQ(server.observer().windows(WindowClass::kNear), 1);
  EXPECT_EQ(server.observer().narrowed(), 2);
  EXPECT_GT(server.observer().told("connections slower than their distance allows"), 0);
  first.reset();
  ASSERT_TRUE(Eventually([&] { return server.observer().closed() == 1; }));
  EXPECT_TRUE(LargeRmse(ConnectTo(relay.address()), a, b) == expected);
  EXPECT_EQ(server.observer().windows(WindowClass::kMiddle), 2);
}

TEST(Distance, DrainAndHealthHoldForAll) {
  TestServer server(FarToo(3));
  const Relay relay(server.address(), kOneWay);
  server.rpc().SetReady(false);
  const auto far = ConnectTo(relay.address()), near = server.Connect();
  EXPECT_EQ(Readiness(far), 2) << "also where its server came later";
  server.rpc().SetReady(true);
  EXPECT_EQ(Readiness(far), 1);
  EXPECT_EQ(Readiness(near), 1);
  RawStream running(far), left(far), refused(far);
  const std::string a = Floats(1000, 1);
  ASSERT_TRUE(running.Open(TransposeOpen(v1::DTYPE_F32, {1000})));
  ASSERT_TRUE(left.Open(TransposeOpen(v1::DTYPE_F32, {1000})));
  server.rpc().BeginDrain();
  EXPECT_FALSE(refused.Open(TransposeOpen(v1::DTYPE_F32, {1000})));
  ExpectError(refused.Drain(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  ASSERT_TRUE(running.SendAll(0, a));
  EXPECT_TRUE(running.End().ok());
  EXPECT_TRUE(running.output == a);
  server.rpc().Shutdown(Clock::now());
  ExpectError(left.Drain(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  // On a busy machine the near client's handshake may take as long as that of a far one.
  EXPECT_GE(server.observer().windows(WindowClass::kFar), 1);
}

TEST(Distance, FailedCallsEndConnectionsFromAfarToo) {
  auto options = FarToo(1);
  options.rpc.connections.most_failed_calls = 20;
  TestServer server(options);
  const Relay relay(server.address(), kOneWay);
  const auto far = ConnectTo(relay.address());
  EXPECT_TRUE(Eventually([&] {
    (void)ByteCall(far, "/tilewire.v1.Kernels/None").Unary("");
    return server.observer().ended() == 1;
  }));
  EXPECT_EQ(server.observer().windows(WindowClass::kFar), relay.connections()) << "gRPC may make another";
  ExpectUnharmed(server);
}

TEST(Distance, AreToldInMetrics) {
  Program program({"--device", "cpu", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                   "--device-bytes", "64MiB", "--distance-bytes", "512MiB"});
  // Far by TCP alone, however long the answer takes.
  const Relay relay(program.Ready().front(), kOneWay, 0, bench::Handshake::kWithFirstBytes);
  const std::string a = Floats(1000, 1), b = Floats(1000, 2);
  EXPECT_TRUE(LargeRmse(ConnectTo(relay.address()), a, b) == HostRmse(a, b, DType::kF32, {1000}));
  const std::string metrics = HttpGet(program.MetricsAddress(), "/metrics");
  EXPECT_NE(metrics.find("tilewire_connections_window_total{window=\"far\"} 1"), std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("tilewire_connections_narrowed_total 0"), std::string::npos);
}

TEST(Distance, OneWindowForAllWhereItIsGiven) {
  Program program({"--device", "cpu", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                   "--device-bytes", "64MiB", "--receive-window", "128KiB"});
  const Relay relay(program.Ready().front(), kOneWay);
  const std::string a = Floats(1000, 1), b = Floats(1000, 2);
  EXPECT_TRUE(LargeRmse(ConnectTo(relay.address()), a, b) == HostRmse(a, b, DType::kF32, {1000}));
  const std::string metrics = HttpGet(program.MetricsAddress(), "/metrics");
  EXPECT_NE(metrics.find("tilewire_connections_window_total{window=\"far\"} 0"), std::string::npos)
      << metrics;
}

/// A door that measures, and clients that are no gRPC.
class Measuring : public ::testing::Test {
 protected:
  Measuring() : door_({}, {"127.0.0.1:0"}, nullptr, {.wide_bytes = 64 << 20, .greeting = rpc::Greeting()}) {}
  static void Send(const FileDescriptor& fd, const std::string& bytes) {
    EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  const std::string preface_ =
      std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
  Door door_;
};

TEST_F(Measuring, HandsOverAllThatCame) {
  const auto client = Connect(door_.address());
  std::string greeting(rpc::Greeting().size(), '\0');
  ASSERT_EQ(recv(client.get(), greeting.data(), greeting.size(), MSG_WAITALL),
            static_cast<ssize_t>(greeting.size()));
  EXPECT_EQ(greeting, rpc::Greeting());
  const std::string acknowledged = preface_ + std::string("\0\0\0\4\1\0\0\0\0", 9);
  Send(client, acknowledged);
  ASSERT_TRUE(door_.Inside(1));
  std::string seen(acknowledged.size(), '\0');
  EXPECT_EQ(recv(door_.fd(0), seen.data(), seen.size(), 0), static_cast<ssize_t>(seen.size()));
  EXPECT_EQ(seen, acknowledged);
  door_.End(0);
  EXPECT_TRUE(Eventually([&] { return door_.observer.closed == 1; }));
}

TEST_F(Measuring, NobodyIsKeptWhoDoesNotAnswer) {
  const auto silent = Connect(door_.address()), other = Connect(door_.address()),
             old = Connect(door_.address());
  Send(old, preface_);
  Send(other, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(door_.Inside(3));
}

TEST_F(Measuring, WhoLeavesIsGone) {
  for (int i = 1; i <= 10; ++i) {
    auto client = Connect(door_.address());
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client.Reset();
    EXPECT_TRUE(Eventually([&] { return door_.observer.closed == i; }));
  }
}

}  // namespace
}  // namespace tilewire::testing

// What clients from afar may send unread, frame by frame: windows that a connection has from its first byte
// on.
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "server/rpc/transport/given_window.h"
#include "tests/bench/http2_frames.h"
#include "tests/bench/relay.h"
#include "tests/integration/framed.h"
#include "tests/integration/helpers.h"
#include "tests/unit/loopback_socket.h"

namespace tilewire::testing {
namespace {

using bench::Relay;
using rpc::FileDescriptor;
using rpc::WindowClass;
namespace http2 = bench::http2;

constexpr std::chrono::milliseconds kEachWay{13};
/// As far as a server knows it that was kept from looking at the answer.
constexpr std::chrono::milliseconds kAtLeast = 2 * kEachWay - std::chrono::milliseconds(10);
constexpr int64_t kFirstWindow = 65535;  ///< of HTTP/2
const std::string kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Keeps account of what the other end lets it send.
class Grants : public Framed {
 public:
  using Framed::Framed;

  /// Takes the next frame; SETTINGS are acknowledged.
  void Take() {
    const std::string header = Receive(http2::kFrameHeaderBytes);
    const std::string payload = Receive(http2::Number(header.data(), 3));
    const uint32_t stream = http2::Number(header.data() + 5, 4);
    if (header[3] == http2::kWindow && stream == 0) connection_ += http2::Number(payload.data(), 4);
    if (header[3] != http2::kSettings || header[4] != 0) return;
    for (size_t at = 0; at + 6 <= payload.size(); at += 6)
      if (http2::Number(payload.data() + at, 2) == http2::kInitialWindowSetting)
        stream_ = http2::Number(payload.data() + at + 2, 4);
    SendFrame(http2::kSettings, http2::kAck, 0, {});
  }
  /// Until both are more than HTTP/2 begins with.
  void TakeWindows() {
    while (!::testing::Test::HasFailure() && (stream_ == kFirstWindow || connection_ == kFirstWindow)) Take();
  }
  int64_t stream() const { return stream_; }
  int64_t connection() const { return connection_; }

 private:
  int64_t stream_ = kFirstWindow, connection_ = kFirstWindow;
};

TestServer::Options Wide(int64_t places_bytes) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  options.rpc.receive.distance_bytes = (places_bytes / 45 + 1) * 64;
  options.rpc.connections.acknowledge_within = std::chrono::minutes(1);  // for a machine that stands still
  return options;
}

/// With gRPC's probe it would be 4 MiB, and more only when much has come.
TEST(GivenWindow, IsThereBeforeAnythingIsSent) {
  ASSERT_TRUE(rpc::GiveWindows()) << "this gRPC takes no windows: its probe decides";
  TestServer server(Wide(4 * rpc::PlaceBytes(rpc::kMostWideBytes)));
  const Relay relay(server.address(), kEachWay);
  Grants client(FileDescriptor(http2::Connect(relay.address())));
  client.Send(kClientPreface);
  client.SendFrame(http2::kSettings, 0, 0, {});
  client.TakeWindows();
  EXPECT_GE(client.stream(), rpc::WindowNeeded(kAtLeast));
  EXPECT_LE(client.stream(), rpc::kMostWideBytes);
  EXPECT_EQ(client.stream() % rpc::kLeastWideBytes, 0);
  EXPECT_EQ(client.connection(), client.stream()) << "else the connection's would be the limit";
  EXPECT_EQ(server.observer().windows(WindowClass::kFar), 1);
}

/// TCP alone sees half of the way, which would be a wide window, too.
TEST(GivenWindow, IsThatOfTheWholeWay) {
  TestServer server(Wide(4 * rpc::PlaceBytes(rpc::kMostWideBytes)));
  const Relay relay(server.address(), kEachWay, 0, bench::Handshake::kWithFirstBytes);
  Grants client(FileDescriptor(http2::Connect(relay.address())));
  client.Send(kClientPreface);
  client.SendFrame(http2::kSettings, 0, 0, {});
  client.TakeWindows();
  EXPECT_GE(client.stream(), rpc::WindowNeeded(kAtLeast));
}

/// No answer could make it wider: nobody waits for one, which would not come here.
TEST(GivenWindow, IsTheWidestAtOnceWhereTcpSaysSo) {
  auto options = Wide(4 * rpc::PlaceBytes(rpc::kMostWideBytes));
  options.rpc.connections.acknowledge_within = std::chrono::hours(1);
  TestServer server(options);
  const Relay relay(server.address(), std::chrono::milliseconds(40), 0, bench::Handshake::kWithFirstBytes);
  Grants client(FileDescriptor(http2::Connect(relay.address())));
  client.Send(kClientPreface);
  client.SendFrame(http2::kSettings, 0, 0, {});
  EXPECT_TRUE(Eventually([&] { return server.observer().windows(WindowClass::kFar) == 1; }));
}

TEST(GivenWindow, IsWhatMemoryLeaves) {
  TestServer server(Wide(2 * rpc::PlaceBytes(rpc::kLeastFarBytes)));
  const Relay relay(server.address(), kEachWay);
  for (int i = 1; i <= 2; ++i) {
    Grants client(FileDescriptor(http2::Connect(relay.address())));
    client.Send(kClientPreface);
    client.SendFrame(http2::kSettings, 0, 0, {});
    client.TakeWindows();
    EXPECT_EQ(client.stream(), rpc::kLeastFarBytes);
    EXPECT_EQ(client.connection(), rpc::kLeastFarBytes);
    EXPECT_EQ(server.observer().windows(WindowClass::kMiddle), i);
    EXPECT_EQ(server.observer().narrowed(), i);
  }
}

/// gRPC makes the transport elsewhere, as it does after a handshake of TLS; here it is a client's.
TEST(GivenWindow, IsTheSameForThoseWhoCannotBeTold) {
  const TestServer server(Wide(rpc::kMostWideBytes));  // by which windows are given
  LoopbackSocket listening;
  listening.Listen();
  const auto channel = grpc::CreateChannel(listening.address(), grpc::InsecureChannelCredentials());
  (void)channel->GetState(true);  // connects
  Grants peer(listening.Accept());
  EXPECT_EQ(peer.Receive(kClientPreface.size()), kClientPreface);
  peer.TakeWindows();
  EXPECT_EQ(peer.stream(), rpc::kSealedWideBytes);
  EXPECT_EQ(peer.connection(), rpc::kSealedWideBytes);
}

/// gRPC grants a connection anew what came, read or not: so each of its streams counts its window.
TEST(GivenWindow, IsCountedForEachStream) {
  constexpr int kStreams = 40;
  constexpr int64_t kPlaces = 4 * rpc::PlaceBytes(rpc::kMostWideBytes);
  constexpr auto kMost = static_cast<int>(kPlaces / rpc::kFarWindowBytes) + 1;
  static_assert(kMost < kStreams);
  TestServer server(Wide(kPlaces));
  const Relay relay(server.address(), kEachWay);
  const auto far = ConnectTo(relay.address());
  std::array<std::unique_ptr<RawStream>, kStreams> streams;
  for (auto& stream : streams) {
    stream = std::make_unique<RawStream>(far);
    stream->Start();
  }
  const auto refused = [&] {
    int count = 0;
    for (const auto& record : server.observer().records()) count += record.status.reason() == "BUSY" ? 1 : 0;
    return count;
  };
  EXPECT_TRUE(Eventually([&] { return refused() >= kStreams - kMost; }));
  EXPECT_LE(refused(), kStreams - 3) << "four of the widest fit, and one caller alone has 13/16 of that";
  EXPECT_EQ(server.observer().windows(WindowClass::kFar), 1);
  for (auto& stream : streams) stream->context.TryCancel();
  streams = {};
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

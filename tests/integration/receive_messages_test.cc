// Messages that do not come whole, and what is none: refused at once, told once, and on record.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/rpc/transport/grpc_reads.h"
#include "tests/bench/http2_frames.h"
#include "tests/integration/doors.h"
#include "tests/integration/framed.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

namespace http2 = bench::http2;

constexpr auto kTranspose = "/tilewire.v1.Kernels/Transpose";

/// By hand: begins large messages, all at once, and sends all of each but its end.
class Halves : public Framed {
 public:
  static constexpr uint32_t kBytes = 8'000'000;

  /// From an address of its own, as shares are by address.
  Halves(const std::string& address, uint32_t streams) : Framed(Connect(address, "127.0.0.2")) {
    Send(http2::ClientGreeting(1 << 20));
    for (uint32_t i = 0; i < streams; ++i) {
      const uint32_t stream = 2 * i + 1;
      SendFrame(http2::kHeaders, http2::kEndHeaders, stream, http2::CallHeaders(i == 0, kTranspose, 600'000));
      std::string prefix(1, '\0');
      http2::AppendNumber(&prefix, kBytes, 4);
      SendFrame(http2::kData, 0, stream, prefix);
      connection_ -= prefix.size();
      streams_[stream] = {.window = kFirstWindow - prefix.size()};
    }
  }
  /// Until each is refused or has come but for its end; how many were refused.
  int SendAll(bool in_turns) {
    const std::string zeros(http2::kFrameBytes, '\0');
    while (!::testing::Test::HasFailure()) {
      bool is_on_way = false, has_sent = false;
      for (auto& [number, stream] : streams_) {
        if (stream.is_over || stream.left == 0) continue;
        is_on_way = true;
        const size_t bytes = std::min({stream.left, stream.window, connection_, http2::kFrameBytes});
        if (bytes == 0 && in_turns) continue;
        if (bytes == 0) break;
        has_sent = true;
        stream.left -= bytes, stream.window -= bytes, connection_ -= bytes;
        SendFrame(http2::kData, 0, number, std::string_view(zeros).substr(0, bytes));
        if (!in_turns) break;
      }
      if (!is_on_way) break;
      if (!has_sent) Take();
    }
    return static_cast<int>(std::count_if(streams_.begin(), streams_.end(),
                                          [](const auto& stream) { return stream.second.is_over; }));
  }
  /// What the last one that was refused was told, and more.
  const std::string& told() const { return told_; }
  /// Once all that the server has said by now is here: how often each stream was told.
  std::vector<int> TimesTold() {
    SendFrame(http2::kPing, 0, 0, "an echo.");
    is_answered_ = false;
    while (!is_answered_ && !::testing::Test::HasFailure()) Take();
    std::vector<int> times;
    for (const auto& [unused, stream] : streams_)
      if (stream.is_over) times.push_back(stream.told);
    return times;
  }

 private:
  static constexpr size_t kFirstWindow = 65535;
  struct Stream {
    size_t window = kFirstWindow, left = kBytes - 1;
    bool is_over = false;
    int told = 0;  ///< headers that came
  };
  void Take() {
    const std::string header = Receive(http2::kFrameHeaderBytes);
    const std::string payload = Receive(http2::Number(header.data(), 3));
    const uint32_t number = http2::Number(header.data() + 5, 4);
    if (header[3] == http2::kSettings && header[4] == 0) {
      SendFrame(http2::kSettings, http2::kAck, 0, {});
      constexpr size_t kEach = 6;
      for (size_t at = 0; at + kEach <= payload.size(); at += kEach) {
        if (http2::Number(payload.data() + at, 2) != http2::kInitialWindowSetting) continue;
        const size_t now = http2::Number(payload.data() + at + 2, 4);
        for (auto& [unused, stream] : streams_) stream.window += now - first_;  // modulo: it may be less
        first_ = now;
      }
    }
    if (header[3] == http2::kPing && header[4] == http2::kAck) is_answered_ = true;
    if (header[3] == http2::kWindow)
      (number == 0 ? connection_ : streams_[number].window) += http2::Number(payload.data(), 4);
    if (header[3] == http2::kHeaders) {
      told_ = payload;
      ++streams_[number].told;
    }
    if (header[3] == http2::kHeaders || header[3] == http2::kReset) streams_[number].is_over = true;
  }

  std::map<uint32_t, Stream> streams_;
  size_t connection_ = kFirstWindow, first_ = kFirstWindow;
  std::string told_;
  bool is_answered_ = false;
};

/// How many calls are on record with that reason, and `text` in their message.
int64_t OnRecord(TestServer& server, std::string_view reason, std::string_view text) {
  const auto records = server.observer().records();
  return std::count_if(records.begin(), records.end(), [&](const rpc::CallRecord& record) {
    return record.status.reason() == reason && record.status.message().find(text) != std::string::npos;
  });
}

TEST(ReceiveMessages, OfWhoSendsThemAllButTheirEnds) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  TestServer server(options);
  rpc::LimitMessagesOnWay(32 * kMiB, 32 * kMiB);  // far less than gRPC's own limit, beyond which it ends any
  int all_refused = 0;
  for (const bool in_turns : {false, true, false}) {  // what was held is given back
    constexpr int kStreams = 16;                      // 128 MB, of which there is room for 26 MiB
    // All that there were before have given back what they held.
    ASSERT_TRUE(
        Eventually([&] { return std::ssize(server.observer().records()) == server.observer().started(); }));
    Halves halves(server.address(), kStreams);
    const int refused = halves.SendAll(in_turns);
    EXPECT_GE(refused, 12);
    // In turns each block of memory has pieces of all of them, and goes with the last.
    if (!in_turns) {
      EXPECT_LT(refused, kStreams) << "there is room for what others sent";
    }
    all_refused += refused;
    // What was sent last may be refused only now.
    EXPECT_TRUE(Eventually([&] { return server.observer().messages_refused() >= all_refused; }));
    const std::vector<int> times = halves.TimesTold();
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), std::ssize(times)) << "told once each";
    EXPECT_NE(halves.told().find("messages on their way of one caller hold "), std::string::npos);
    ExpectGoodCalls(server);
  }
  EXPECT_TRUE(Eventually([&] {
    return OnRecord(server, "BUSY", "messages on their way of one caller") ==
           server.observer().messages_refused();
  }));
  ExpectUnharmed(server);
}

/// What each call of a connection was told, each time.
using Told = std::map<uint32_t, std::vector<int>>;

/// The next frame; whether it is the answer to a ping.
bool Take(Framed* connection, Told* told) {
  const std::string header = connection->Receive(http2::kFrameHeaderBytes);
  const std::string payload = connection->Receive(http2::Number(header.data(), 3));
  if (header[3] == http2::kSettings && header[4] == 0)
    connection->SendFrame(http2::kSettings, http2::kAck, 0, {});
  if (header[3] == http2::kHeaders && (header[4] & http2::kEndStream) != 0)
    (*told)[http2::Number(header.data() + 5, 4)].push_back(http2::TrailersIn(payload).status);
  return header[3] == http2::kPing && header[4] == http2::kAck;
}

/// A call whose first bytes of a message are these, and many more, until it is told something.
void Begin(Framed* connection, uint32_t stream, const std::string& path, std::string_view begin, Told* told) {
  connection->SendFrame(http2::kHeaders, http2::kEndHeaders, stream,
                        http2::CallHeaders(stream == 1, path, 600'000));
  // In two frames, as those who read see what comes.
  connection->SendFrame(http2::kData, 0, stream, begin.substr(0, 3));
  connection->SendFrame(http2::kData, 0, stream, begin.substr(3));
  connection->SendFrame(http2::kData, 0, stream, std::string(1000, '\0'));
  while (!told->contains(stream) && !::testing::Test::HasFailure()) (void)Take(connection, told);
}

std::string PrefixOf(char flags, uint32_t length) {
  std::string prefix(1, flags);
  http2::AppendNumber(&prefix, length, 4);
  return prefix;
}

/// Connects from a socket that has a name, which gRPC's clients have not.
rpc::FileDescriptor ConnectNamed(const std::string& from, const std::string& to) {
  const auto at = [](const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
  };
  rpc::FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM, 0));
  const auto here = at(from), there = at(to);
  unlink(from.c_str());
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  return fd;
}

TEST(ReceiveMessages, WhatIsNoneIsRefusedWhenItBegins) {
  const std::string path = ::testing::TempDir() + "messages-" + std::to_string(getpid()) + ".sock";
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0", "unix:" + path};
  TestServer server(options);
  int calls = 0, refused = 0;
  struct Connection {
    explicit Connection(rpc::FileDescriptor socket) : framed(std::move(socket)) {}
    Framed framed;
    Told told;
  };
  std::vector<std::unique_ptr<Connection>> connections;
  for (const bool is_unix : {false, true})
    for (const std::string method : {kTranspose, "/tilewire.v1.Kernels/Execute",
                                     "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}) {
      connections.push_back(std::make_unique<Connection>(is_unix ? ConnectNamed(path + ".client", path)
                                                                 : Connect(server.address(), "127.0.0.2")));
      auto& [connection, told] = *connections.back();
      connection.Send(http2::ClientGreeting(1 << 20));
      uint32_t stream = 1;
      for (const auto& begin :
           {PrefixOf(0, 8 * kMiB + 1), PrefixOf(0, 0xffffffff), PrefixOf(2, 3), PrefixOf('\xff', 0)}) {
        Begin(&connection, stream, method, begin, &told);
        stream += 2, ++refused;
        calls += method.starts_with("/tilewire") ? 1 : 0;
      }
    }
  EXPECT_TRUE(Eventually([&] { return server.observer().messages_refused() == refused; }));
  EXPECT_TRUE(Eventually([&] {
    return OnRecord(server, "LIMIT", "message") + OnRecord(server, "BAD_MESSAGE", "a message begins with") ==
           calls;
  })) << calls
      << " calls, LIMIT " << OnRecord(server, "LIMIT", "") << ", BAD_MESSAGE "
      << OnRecord(server, "BAD_MESSAGE", "");
  for (const auto& one : connections) {  // by now their calls have ended
    auto& [connection, told] = *one;
    connection.SendFrame(http2::kPing, 0, 0, "an echo.");
    while (!Take(&connection, &told) && !HasFailure()) continue;
    EXPECT_EQ(told, (Told{{1, {8}}, {3, {8}}, {5, {3}}, {7, {3}}})) << "once each";
  }
  connections.clear();
  ExpectUnharmed(server);
  unlink((path + ".client").c_str());
}

}  // namespace
}  // namespace tilewire::testing

// One caller who takes no replies, or opens streams and sends nothing: others find room for their calls.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "server/rpc/transport/grpc_reads.h"
#include "tests/bench/http2_frames.h"
#include "tests/integration/doors.h"
#include "tests/integration/framed.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

namespace http2 = bench::http2;

constexpr auto kTranspose = "/tilewire.v1.Kernels/Transpose", kExecute = "/tilewire.v1.Kernels/Execute";

/// By hand: has no window for replies, and keeps to the server's own.
class Hoarder : public Framed {
 public:
  explicit Hoarder(const std::string& address) : Framed(rpc::FileDescriptor(http2::Connect(address))) {
    std::string no_window;
    http2::AppendNumber(&no_window, http2::kInitialWindowSetting, 2);
    http2::AppendNumber(&no_window, 0, 4);
    Send(http2::ClientGreeting(1 << 20));
    SendFrame(http2::kSettings, 0, 0, no_window);
  }
  /// The headers of one call more.
  void Begin(const std::string& method) {
    stream_ += 2;
    const std::string caller("\0\6x-user\7hoarder", 16);
    SendFrame(http2::kHeaders, http2::kEndHeaders, stream_,
              http2::CallHeaders(stream_ == 1, method, 600'000) + caller);
  }
  /// The message of that call, smaller than a stream's first window.
  void Finish(std::string_view request) {
    std::string message;
    http2::AppendMessage(&message, request);
    for (std::string_view rest = message; !rest.empty() && !::testing::Test::HasFailure();) {
      while (window_ == 0 && !::testing::Test::HasFailure()) Take();
      const size_t bytes = std::min({rest.size(), window_, http2::kFrameBytes});
      window_ -= bytes;
      SendFrame(http2::kData, bytes == rest.size() ? http2::kEndStream : 0, stream_, rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
  }

 private:
  /// The next frame: more of the connection's window, perhaps.
  void Take() {
    const std::string header = Receive(http2::kFrameHeaderBytes);
    const std::string payload = Receive(http2::Number(header.data(), 3));
    if (header[3] == http2::kWindow && http2::Number(header.data() + 5, 4) == 0)
      window_ += http2::Number(payload.data(), 4);
    if (header[3] == http2::kSettings && header[4] == 0) SendFrame(http2::kSettings, http2::kAck, 0, {});
  }

  uint32_t stream_ = static_cast<uint32_t>(-1);
  size_t window_ = 65535;  ///< of the connection
};

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
  int SendAll() {
    const std::string zeros(http2::kFrameBytes, '\0');
    while (!::testing::Test::HasFailure()) {
      bool is_on_way = false, has_sent = false;
      for (auto& [number, stream] : streams_) {
        if (stream.is_over || stream.left == 0) continue;
        is_on_way = true;
        const size_t bytes = std::min({stream.left, stream.window, connection_, http2::kFrameBytes});
        if (bytes == 0) continue;
        has_sent = true;
        stream.left -= bytes, stream.window -= bytes, connection_ -= bytes;
        SendFrame(http2::kData, 0, number, std::string_view(zeros).substr(0, bytes));
      }
      if (!is_on_way) break;
      if (!has_sent) Take();
    }
    return static_cast<int>(std::count_if(streams_.begin(), streams_.end(),
                                          [](const auto& stream) { return stream.second.is_over; }));
  }
  /// What the last one that was refused was told, and more.
  const std::string& told() const { return told_; }

 private:
  static constexpr size_t kFirstWindow = 65535;
  struct Stream {
    size_t window = kFirstWindow, left = kBytes - 1;
    bool is_over = false;
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
    if (header[3] == http2::kWindow)
      (number == 0 ? connection_ : streams_[number].window) += http2::Number(payload.data(), 4);
    // gRPC says so twice: the second time without a reason.
    if (header[3] == http2::kHeaders && !std::exchange(streams_[number].is_over, true)) told_ = payload;
    if (header[3] == http2::kReset) streams_[number].is_over = true;
  }

  std::map<uint32_t, Stream> streams_;
  size_t connection_ = kFirstWindow, first_ = kFirstWindow;
  std::string told_;
};

class ReceiveShares : public ::testing::Test {
 protected:
  static TestServer::Options Options() {
    TestServer::Options options;
    options.rpc.listen = {"127.0.0.1:0"};
    options.rpc.identity_header = "x-user";
    options.rpc.receive.quota = 16 * kMiB;  // of which unary calls may hold 4 MiB and streams 11.25
    return options;
  }
  /// Waits until so many calls have come and some were refused for want of room; what these were told.
  std::string Refusal(int calls) {
    std::string told;
    EXPECT_TRUE(Eventually([&] {
      for (const rpc::CallRecord& record : server_.observer().records())
        if (record.status.reason() == "BUSY" && record.status.message().find(" hold ") != std::string::npos)
          told = record.status.message();
      return server_.observer().started() >= calls && !told.empty();
    }));
    return told;
  }
  TestServer server_{Options()};
};

TEST_F(ReceiveShares, OfWhoTakesNoReplies) {
  v1::TransposeRequest request;
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {12'500});
  request.mutable_input()->set_data(Floats(12'500, 1));
  const std::string bytes = request.SerializeAsString();
  {
    Hoarder hoarder(server_.address());
    constexpr int kCalls = 100;  // 5 MB
    for (int i = 0; i < kCalls; ++i) {
      hoarder.Begin(kTranspose);
      hoarder.Finish(bytes);
    }
    const std::string told = Refusal(kCalls);
    ExpectGoodCalls(server_);
    EXPECT_TRUE(told.starts_with("waiting calls and replies of one caller hold ")) << told;
  }
  ExpectUnharmed(server_);
}

TEST_F(ReceiveShares, OfWhoOnlyOpensStreams) {
  {
    Hoarder hoarder(server_.address());
    constexpr int kCalls = 120;  // a window of 128 KiB each
    for (int i = 0; i < kCalls; ++i) hoarder.Begin(kExecute);
    const std::string told = Refusal(kCalls);
    ExpectGoodCalls(server_);
    EXPECT_TRUE(told.starts_with("streams of one caller hold ")) << told;
  }
  ExpectUnharmed(server_);
}

TEST(ReceiveMessages, OfWhoSendsThemAllButTheirEnds) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  TestServer server(options);
  rpc::LimitMessagesOnWay(32 * kMiB, 32 * kMiB);  // far less than gRPC's own limit, beyond which it ends any
  int all_refused = 0;
  for (int time = 0; time < 2; ++time) {  // what was held is given back
    constexpr int kStreams = 16;          // 128 MB, of which there is room for 26 MiB
    Halves halves(server.address(), kStreams);
    const int refused = halves.SendAll();
    EXPECT_GE(refused, 12);
    EXPECT_LT(refused, kStreams) << "as soon as one has gone there is room for what the others send";
    all_refused += refused;
    // What was sent last may be refused only now.
    EXPECT_TRUE(Eventually([&] { return server.observer().messages_refused() >= all_refused; }));
    EXPECT_NE(halves.told().find("messages on their way of one caller hold "), std::string::npos);
    ExpectGoodCalls(server);
  }
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

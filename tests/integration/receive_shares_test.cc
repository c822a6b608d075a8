// One caller who takes no replies, or opens streams and sends nothing: others find room for their calls.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

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

}  // namespace
}  // namespace tilewire::testing

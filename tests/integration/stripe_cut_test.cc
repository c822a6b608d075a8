// Clients of striped calls that vanish without a word: their socket is cut, their process is killed.
#include <grpcpp/create_channel_posix.h>
#include <netinet/in.h>

#include <filesystem>

#include "tests/integration/join.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

/// A connection to a server's first listener whose socket can be cut from here.
class Wire {
 public:
  explicit Wire(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in peer{};
    peer.sin_family = AF_INET;
    peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&peer), sizeof peer), 0);
    const int gives = dup(fd_);  // the channel closes its own
    EXPECT_EQ(fcntl(gives, F_SETFL, fcntl(gives, F_GETFL) | O_NONBLOCK), 0);
    channel_ = grpc::CreateInsecureChannelFromFd("wire", gives);
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  void Cut() { shutdown(fd_, SHUT_RDWR); }

 private:
  const int fd_;
  std::shared_ptr<grpc::Channel> channel_;
};

class StripeCut : public OnBoth {};

TEST_P(StripeCut, ASocketThatBreaksEndsAllStreams) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  TestServer server(device(), options);
  const std::string a = Floats(kBytes / 4, 8);
  for (const auto& open : {TransposeOpen(v1::DTYPE_F32, kShape), RmseOpen(v1::DTYPE_F32, kShape)})
    for (const size_t victim : {0, 1, 2}) {
      SCOPED_TRACE("stream " + std::to_string(victim));
      Wire wires[]{Wire(server.address()), Wire(server.address()), Wire(server.address())};
      RawStream first(wires[0].channel());
      JoinedStream second(wires[1].channel()), third(wires[2].channel());
      ASSERT_TRUE(first.Open(Striped(open, 3)));
      ASSERT_TRUE(second.Join(first.opened.job()));
      ASSERT_TRUE(third.Join(first.opened.job()));
      RawStream* streams[]{&first, &second, &third};
      for (size_t i = 0; i < 3; ++i)  // each in the middle of a block
        ASSERT_TRUE(streams[i]->SendAll(0, a, 10'000, 10 * i * kBlock, (10 * i + 5) * kBlock + 1000));
      wires[victim].Cut();
      for (size_t i = 0; i < 3; ++i) {
        const auto status = streams[i]->Drain();
        if (i == victim) {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);  // by the client's own gRPC
        } else {
          ExpectError(status, grpc::StatusCode::UNAVAILABLE, "STREAM_LOST");
        }
      }
      server.ExpectIdle();
    }
  ExpectUnharmed(server);
}

TEST_P(StripeCut, TwoStreamsOfAJobMayShareAConnection) {
  TestServer server(device(), {});
  const std::string a = Floats(kBytes / 4, 5), b = Floats(kBytes / 4, 6);
  const auto channel = server.Connect();
  RawStream first(channel);
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 3)));
  JoinedStream second(channel), third(channel), fourth(channel);
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(third.Join(first.opened.job()));
  EXPECT_NE(second.number, third.number);
  ASSERT_EQ(first.opened.max_streams(), 3u);
  EXPECT_FALSE(fourth.Join(first.opened.job()));
  ExpectError(fourth.Drain(), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "streams of the job", "4", "3");
  std::thread other([&] { EXPECT_TRUE(second.SendAll(0, a, 10'000)); });
  EXPECT_TRUE(third.SendAll(1, b, 20'000));
  other.join();
  for (RawStream* stream : {static_cast<RawStream*>(&second), static_cast<RawStream*>(&third), &first}) {
    const auto status = stream->End();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_TRUE(first.output == HostRmse(a, b, DType::kF32, kShape));
  ExpectUnharmed(server);
}

TILEWIRE_ON_BOTH(StripeCut);

/// A file of 256 MiB of zeros that takes no space.
void WriteLargeArray(const std::string& path) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (8192, 8192), }";
  header.resize(117, ' ');
  const std::string start{'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
  std::ofstream(path) << start << header << "\n";
  ASSERT_EQ(truncate(path.c_str(), 128 + (int64_t{256} << 20)), 0);
}

TEST(StripeKilled, AClientThatIsKilledLeavesNothingBehind) {
  const std::filesystem::path folder = ::testing::TempDir() + "stripe-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  WriteLargeArray(folder / "in.npy");
  Program server({"--device", "cpu", "--device-bytes", "1GiB", "--block-bytes", "64KiB", "--listen",
                  "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"});
  const std::string address = server.Ready()[0], metrics = server.MetricsAddress();
  bool in_the_middle = false;
  for (int attempt = 0; attempt < 20 && !in_the_middle; ++attempt) {
    Program client(TILEWIRE_TILEWIRE, {"--server", address, "--connections", "4", "transpose",
                                       folder / "in.npy", folder / "out.npy"});
    EXPECT_TRUE(Eventually(
        [&] { return !client.running() || SumOfMetric(metrics, "tilewire_jobs_in_flight ") == 1; }));
    client.Signal(SIGSTOP);  // stopped first, so that it is certain where it was killed
    in_the_middle = client.running() && SumOfMetric(metrics, "tilewire_jobs_in_flight ") == 1;
    client.Signal(SIGKILL);
    client.Wait(60);
    if (!in_the_middle) std::filesystem::remove(folder / "out.npy");  // it came to its end
  }
  EXPECT_TRUE(in_the_middle);
  EXPECT_TRUE(Eventually([&] {
    return SumOfMetric(metrics, "tilewire_jobs_in_flight ") == 0 &&
           SumOfMetric(metrics, "tilewire_calls_in_progress") == 0 &&
           SumOfMetric(metrics, "tilewire_device_used_bytes ") == 0 &&
           SumOfMetric(metrics, "tilewire_pinned_used_bytes ") == 0;
  })) << HttpGet(metrics, "/metrics");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.npy")) << "files are written whole or not at all";
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(60), 0) << server.err();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tilewire::testing

// Two servers behind HAProxy with the example configuration of deploy/: calls are balanced, striped ones find
// their server, draining is clean.
#include "tests/integration/haproxy.h"

#include "client/cpp/client.h"
#include "tests/integration/join.h"

namespace tilewire::testing {
namespace {

class Haproxy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (HaproxyPath().empty())
      GTEST_SKIP() << "haproxy is not installed; deploy/install-deps.sh --tests installs it";
    servers_ = std::make_unique<std::array<AdvertisingServer, 2>>();
    proxy_ = std::make_unique<HaproxyProgram>(*servers_);
  }
  void TearDown() override {
    if (!proxy_) return;
    EXPECT_TRUE(proxy_->program().running()) << proxy_->program().err();
    proxy_.reset();
    for (auto& server : *servers_) {
      if (!server.program().running()) continue;
      server.ExpectIdle();
      server.program().Signal(SIGTERM);
      EXPECT_EQ(server.program().Wait(60), 0) << server.program().err();
    }
  }
  AdvertisingServer& server(size_t i) { return (*servers_)[i]; }
  std::shared_ptr<grpc::Channel> Connect() const { return ConnectTo(proxy_->address()); }
  double Metric(const std::string& begin) const {
    return (*servers_)[0].Metric(begin) + (*servers_)[1].Metric(begin);
  }

  const std::string a_ = Floats(kBytes / 4, 1), b_ = Floats(kBytes / 4, 2);
  std::unique_ptr<std::array<AdvertisingServer, 2>> servers_;
  std::unique_ptr<HaproxyProgram> proxy_;
};

const std::string kUnaryCalls =
    "tilewire_calls_total{method=\"Kernels.Rmse\",operation=\"rmse\",status=\"OK\"}";

TEST_F(Haproxy, UnaryCallsOfOneConnectionReachBothServers) {
  const auto stub = v1::Kernels::NewStub(Connect());
  const std::string want = HostRmse(a_.substr(0, 4000), b_.substr(0, 4000), DType::kF32, {1000});
  int calls = 0;
  EXPECT_TRUE(Eventually([&] {
    for (int i = 0; i < 10; ++i, ++calls) {
      grpc::ClientContext context;
      v1::RmseResponse response;
      const auto status =
          stub->Rmse(&context, RmseCall({1000}, a_.substr(0, 4000), b_.substr(0, 4000)), &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(response.result().data(), want);
    }
    return std::min(server(0).Metric(kUnaryCalls), server(1).Metric(kUnaryCalls)) >= 10;
  })) << server(0).Metric(kUnaryCalls)
      << " and " << server(1).Metric(kUnaryCalls);
  EXPECT_TRUE(Eventually([&] { return Metric(kUnaryCalls) == calls; })) << "each call once";
}

TEST_F(Haproxy, StreamsReachBothServersAndHaveTheRightBits) {
  const std::string rmse = HostRmse(a_, b_, DType::kF32, kShape, {1});
  const std::string transposed = HostTranspose(a_, DType::kF32, kShape);
  const auto channel = Connect();
  std::map<std::string, int> calls;
  EXPECT_TRUE(Eventually([&] {
    RawStream values(channel), matrix(channel);  // side by side on one connection
    EXPECT_TRUE(values.Open(RmseOpen(v1::DTYPE_F32, kShape, {1})));
    EXPECT_TRUE(matrix.Open(TransposeOpen(v1::DTYPE_F32, kShape)));
    ++calls[values.opened.instance()];
    ++calls[matrix.opened.instance()];
    EXPECT_TRUE(values.SendAll(0, a_, 300'000) && values.SendAll(1, b_) && matrix.SendAll(0, a_, 50'000));
    for (RawStream* stream : {&values, &matrix}) {
      const auto status = stream->End();
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
    EXPECT_TRUE(values.output == rmse);
    EXPECT_TRUE(matrix.output == transposed);
    return calls[server(0).instance()] >= 3 && calls[server(1).instance()] >= 3;
  }));
  EXPECT_EQ(calls.size(), 2u) << "nobody else answered";
}

TEST_F(Haproxy, AStripedCallKeepsToItsServer) {
  const std::string transposed = HostTranspose(a_, DType::kF32, kShape);
  client::CallOptions options;
  options.form = client::CallForm::kStream;
  options.connections = 4;
  options.message_bytes = 20'000;
  uint32_t joined = 0;
  std::string out(kBytes, '\0');
  const client::Sink sink = [&out](uint64_t offset, std::span<const uint8_t> bytes) {
    std::memcpy(out.data() + offset, bytes.data(), bytes.size());
    return Status();
  };
  const std::string joins = "tilewire_joined_streams_total{status=\"OK\"}";
  const auto source = client::ArraySource::FromMemory(MakeSpec(DType::kF32, kShape).value(), a_.data());
  auto client = client::Client::Connect(proxy_->address());
  EXPECT_TRUE(Eventually([&] {
    std::fill(out.begin(), out.end(), '\0');
    const auto reply = client.Transpose(source, {}, sink, options);
    EXPECT_TRUE(reply) << reply.error().ToString();
    if (!reply) return true;
    EXPECT_TRUE(out == transposed);
    joined += reply->timing.streams - 1;
    // The streams that Opened.endpoints led to the one of two servers that has the job.
    return server(0).Metric(joins) >= 3 && server(1).Metric(joins) >= 3;
  }));
  EXPECT_TRUE(Eventually([&] { return Metric(joins) == joined; })) << Metric(joins) << " of " << joined;
  // Others may have come when the job was already done; none came to the wrong server.
  for (size_t i : {0, 1}) EXPECT_EQ(server(i).program().err().find("WRONG_INSTANCE"), std::string::npos);
}

TEST_F(Haproxy, AJoinThatTheBalancerMisleadsIsToldSo) {
  RawStream first(Connect());
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 16)));
  const size_t home = first.opened.instance() == server(0).instance() ? 0 : 1;
  ASSERT_EQ(first.opened.endpoints_size(), 1);
  EXPECT_EQ(first.opened.endpoints(0), server(home).address());
  const auto expect_misled = [&](JoinedStream& stream) {
    ExpectError(stream.Drain(), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_INSTANCE", "join.job",
                first.opened.job());
  };
  JoinedStream direct(ConnectTo(server(1 - home).address()));
  EXPECT_FALSE(direct.Join(first.opened.job()));
  expect_misled(direct);
  bool misled = false;
  std::vector<std::unique_ptr<JoinedStream>> joined;
  for (int i = 0; i < 15 && !misled; ++i) {
    auto stream = std::make_unique<JoinedStream>(Connect());
    if (stream->Join(first.opened.job())) {
      joined.push_back(std::move(stream));  // by chance the right one: it may carry its share
    } else {
      misled = true;
      expect_misled(*stream);
    }
  }
  EXPECT_TRUE(misled);
  JoinedStream second(ConnectTo(first.opened.endpoints(0)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  EXPECT_TRUE(first.SendAll(0, a_) && second.SendAll(1, b_));
  for (auto& stream : joined) EXPECT_TRUE(stream->End().ok());
  EXPECT_TRUE(second.End().ok());
  EXPECT_TRUE(first.End().ok());
  EXPECT_TRUE(first.output == HostRmse(a_, b_, DType::kF32, kShape));
  EXPECT_TRUE(Eventually([&] {
    return server(1 - home).program().err().find("WRONG_INSTANCE") != std::string::npos;
  })) << "the log tells";
}

TEST_F(Haproxy, ADrainingServerIsLeftOutAndItsCallsEndWell) {
  RawStream running(Connect());  // holds its server in the drain
  ASSERT_TRUE(running.Open(TransposeOpen(v1::DTYPE_F32, kShape)));
  const size_t leaving = running.opened.instance() == server(0).instance() ? 0 : 1;
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, refused{0}, in_a_row{0};
  const std::string x = a_.substr(0, 40'000), y = b_.substr(0, 40'000);
  const std::string want = HostRmse(x, y, DType::kF32, {10'000});
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i)
    callers.emplace_back([&] {
      const auto stub = v1::Kernels::NewStub(Connect());
      while (!stop) {
        grpc::ClientContext context;
        v1::RmseResponse response;
        const auto status = stub->Rmse(&context, RmseCall({10'000}, x, y), &response);
        if (status.ok()) {
          EXPECT_TRUE(response.result().data() == want);
          ++good;
          ++in_a_row;
        } else {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
          ++refused;
          in_a_row = 0;
        }
      }
    });
  EXPECT_TRUE(Eventually([&] { return good >= 20; }));
  EXPECT_EQ(refused, 0);
  server(leaving).program().Signal(SIGTERM);
  const std::string down = std::string("Server tilewired/") + (leaving == 0 ? "one" : "two") + " is DOWN";
  EXPECT_TRUE(Eventually([&] { return proxy_->program().err().find(down) != std::string::npos; }))
      << proxy_->program().err();
  in_a_row = 0;
  EXPECT_TRUE(Eventually([&] { return in_a_row >= 100; }));
  EXPECT_TRUE(server(leaving).program().running());
  EXPECT_TRUE(running.SendAll(0, a_));
  const auto status = running.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(running.output == HostTranspose(a_, DType::kF32, kShape));
  EXPECT_EQ(server(leaving).program().Wait(60), 0) << server(leaving).program().err();
  const int before = good, refused_before = refused;
  EXPECT_TRUE(Eventually([&] { return good >= before + 100; }));
  EXPECT_EQ(refused, refused_before) << "its end was felt";
  stop = true;
  for (auto& caller : callers) caller.join();
}

}  // namespace
}  // namespace tilewire::testing

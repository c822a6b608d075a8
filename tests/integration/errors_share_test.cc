// What one caller is refused for the others' sake: over a socket, by identity.
#include "tests/integration/helpers.h"
#include "tests/unit/engine_time_testing.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kLarge{1 << 18};  // f32: 1 MiB an operand, more than a small job

std::string PushbackOf(const grpc::ClientContext& context) {
  const auto& trailing = context.GetServerTrailingMetadata();
  const auto found = trailing.find("grpc-retry-pushback-ms");
  return found == trailing.end() ? "" : std::string(found->second.data(), found->second.size());
}

class ShareOfOne : public OnBoth {
 protected:
  ShareOfOne() {
    options_.rpc.identity_header = "x-user";
    options_.engine.time = &time_;
  }
  /// A unary call of two arrays of one element.
  static grpc::Status Tiny(TestServer& server, const std::string& user, std::string* pushback = nullptr) {
    grpc::ClientContext context;
    context.AddMetadata("x-user", user);
    v1::RmseResponse response;
    auto status =
        v1::Kernels::NewStub(server.Connect())->Rmse(&context, RmseCall({1}, "1234", "1234"), &response);
    if (pushback) *pushback = PushbackOf(context);
    return status;
  }

  ManualTime time_;
  TestServer::Options options_;
};
TILEWIRE_ON_STAGED(ShareOfOne);

TEST_P(ShareOfOne, CallsASecond) {
  options_.engine.rates.calls_per_second = 2;
  TestServer server(device(), options_);
  std::string pushback;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Tiny(server, "ann").ok());
  ExpectError(Tiny(server, "ann", &pushback), kExhausted, "BUSY", "calls a second", "1",
              "2 (--calls-per-second-per-identity)");
  EXPECT_EQ(pushback, "500");
  EXPECT_TRUE(Tiny(server, "bob").ok());
  time_.Advance(std::chrono::milliseconds(500));
  EXPECT_TRUE(Tiny(server, "ann").ok());
  EXPECT_FALSE(Tiny(server, "ann").ok());
  EXPECT_EQ(server.engine().stats().jobs_refused_busy, 2u);
  time_.Advance(std::chrono::seconds(10));
  ExpectUnharmed(server);
}

TEST_P(ShareOfOne, BytesASecond) {
  options_.engine.rates.bytes_per_second = 1 << 20;
  TestServer server(device(), options_);
  {
    RawStream large(server.Connect());
    large.context.AddMetadata("x-user", "ann");
    ASSERT_TRUE(large.Open(RmseOpen(v1::DTYPE_F32, kLarge))) << "two seconds' worth: a debt";
    large.context.TryCancel();
    EXPECT_FALSE(large.Drain().ok());
  }
  RawStream refused(server.Connect());
  refused.context.AddMetadata("x-user", "ann");
  EXPECT_FALSE(refused.Open(RmseOpen(v1::DTYPE_F32, kLarge)));
  ExpectError(refused.End(), kExhausted, "BUSY", "bytes a second", std::to_string((2 << 20) + 8),
              "1048576 (--bytes-per-second-per-identity)");
  EXPECT_EQ(PushbackOf(refused.context), "2001") << "2 MiB and a result, by the millisecond";
  EXPECT_TRUE(Tiny(server, "bob").ok());
  time_.Advance(std::chrono::seconds(10));
  ExpectUnharmed(server);
}

TEST_P(ShareOfOne, PlacesInTheQueue) {
  options_.engine.max_in_flight = 1;
  options_.engine.queue_length = 3;
  options_.engine.queue_length_per_identity = 2;
  TestServer server(device(), options_);
  const std::string a = Floats(kLarge[0], 1), b = Floats(kLarge[0], 2);
  const auto open = [&](RawStream& raw, const char* user) {
    raw.context.AddMetadata("x-user", user);
    return raw.OpenAndSend(RmseOpen(v1::DTYPE_F32, kLarge), a);
  };
  RawStream running(server.Connect()), first(server.Connect()), last(server.Connect()),
      third(server.Connect()), bob(server.Connect()), eve(server.Connect());
  ASSERT_TRUE(open(running, "ann"));
  ASSERT_TRUE(server.InFlight(1));
  std::vector<std::thread> waiters;
  waiters.emplace_back([&] { EXPECT_TRUE(open(first, "ann")); });
  EXPECT_TRUE(server.Queued(1));
  waiters.emplace_back([&] { EXPECT_FALSE(open(last, "ann")) << "makes room for Eve"; });
  EXPECT_TRUE(server.Queued(2));
  EXPECT_FALSE(open(third, "ann"));
  ExpectError(third.End(), kExhausted, "BUSY", "requests of yours that wait", "2",
              "2 (--queue-length-per-identity)");
  waiters.emplace_back([&] { EXPECT_TRUE(open(bob, "bob")); });
  EXPECT_TRUE(server.Queued(3));
  waiters.emplace_back([&] { EXPECT_TRUE(open(eve, "eve")); });
  waiters[1].join();
  ExpectError(last.End(), kExhausted, "BUSY", "requests of yours that wait", "1",
              "an even share of 3 (--queue-length)");
  EXPECT_EQ(PushbackOf(last.context), "250");
  for (RawStream* raw : {&running, &first, &bob, &eve}) {
    if (raw == &first) waiters[0].join();
    if (raw == &bob) waiters[2].join();
    if (raw == &eve) waiters[3].join();
    raw->SendAll(0, a, 1 << 20, 1);
    raw->SendAll(1, b);
    const auto status = raw->End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(raw->output, HostRmse(a, b, DType::kF32, kLarge));
  }
  ExpectUnharmed(server);
}

TEST_P(ShareOfOne, PlacesInFlight) {
  options_.engine.max_in_flight_per_identity = 1;
  TestServer server(device(), options_);
  RawStream running(server.Connect()), waiting(server.Connect());
  running.context.AddMetadata("x-user", "ann");
  waiting.context.AddMetadata("x-user", "ann");
  ASSERT_TRUE(running.OpenAndSend(RmseOpen(v1::DTYPE_F32, kLarge)));
  ASSERT_TRUE(server.InFlight(1));
  ASSERT_TRUE(waiting.OpenAndSend(RmseOpen(v1::DTYPE_F32, kLarge))) << "an order is no place in flight";
  EXPECT_TRUE(server.Queued(1));
  EXPECT_TRUE(Tiny(server, "bob").ok()) << "nobody waits behind her";
  EXPECT_EQ(server.engine().stats().jobs_queued, 1u);
  running.context.TryCancel();
  EXPECT_FALSE(running.Drain().ok());
  EXPECT_TRUE(server.Queued(0));
  waiting.context.TryCancel();
  EXPECT_FALSE(waiting.Drain().ok());
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

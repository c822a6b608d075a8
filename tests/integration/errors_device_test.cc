// Devices that run out of memory, make mistakes, or die.
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kNoSmallJob{300, 1000};  // f32: 1.2 MB, no small job
const char kSecret[] = "illegal address 0xdeadbeef in secret_kernel.cu:42";

Status Broken() {
  return Status(Code::kInternal, "DEVICE_FAILED", kSecret);
}
Status Hiccup() {
  return Status(Code::kInternal, "INTERNAL_ERROR", kSecret);
}

class DeviceErrors : public OnBoth {
 protected:
  /// A whole RMSE call; opened or not, its status.
  static grpc::Status Rmse(RawStream& raw) {
    const std::string data = Floats(300'000, 1);
    if (!raw.Open(RmseOpen(v1::DTYPE_F32, kNoSmallJob))) return raw.End();
    raw.SendAll(0, data);
    raw.SendAll(1, data);
    return raw.End();
  }
  static void ExpectScrubbed(const grpc::Status& status) {
    for (const std::string& text : {status.error_message(), status.error_details()}) {
      EXPECT_EQ(text.find("0xdeadbeef"), std::string::npos) << text;
      EXPECT_EQ(text.find("secret_kernel"), std::string::npos) << text;
    }
  }
};
TILEWIRE_ON_BOTH(DeviceErrors);

TEST_P(DeviceErrors, OutOfMemoryIsBusyAndLeaksNothing) {
  auto shortage = std::make_shared<engine::Shortage>();
  TestServer server(engine::MakeOutOfMemory(device(), shortage), {});
  // Operands, result and scratch are allocated one after the other: each may be the one that fails.
  for (int nth = 1; nth <= 4; ++nth) {
    SCOPED_TRACE(nth);
    shortage->FailNthDevice(nth);
    RawStream raw(server.Connect());
    ExpectError(Rmse(raw), grpc::StatusCode::RESOURCE_EXHAUSTED, "BUSY");
    EXPECT_EQ(raw.context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
    server.ExpectIdle();
    EXPECT_EQ(shortage->leased_device_bytes(), 0);
  }
  for (int nth = 1; staged() && nth <= 6; ++nth) {
    SCOPED_TRACE(nth);
    shortage->FailNthPinned(nth);
    RawStream raw(server.Connect());
    ExpectError(Rmse(raw), grpc::StatusCode::RESOURCE_EXHAUSTED, "BUSY");
    server.ExpectIdle();
    EXPECT_EQ(shortage->leased_device_bytes(), 0);
  }
  shortage->FailNthDevice(1);
  grpc::ClientContext context;
  v1::RmseResponse response;
  ExpectError(
      v1::Kernels::NewStub(server.Connect())->Rmse(&context, RmseCall({1}, "1234", "1234"), &response),
      grpc::StatusCode::RESOURCE_EXHAUSTED, "BUSY");
  ExpectUnharmed(server);
}

TEST_P(DeviceErrors, PassingFaultIsInternalAndScrubbed) {
  auto faults = std::make_shared<engine::Faults>();
  TestServer server(engine::MakeFaulty(device(), faults), {});
  const auto fail = [&](engine::Submitted kind, int64_t nth) {
    SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + ", " + std::to_string(nth));
    faults->FailNth(kind, nth, Hiccup());
    RawStream raw(server.Connect());
    const auto status = Rmse(raw);
    ExpectError(status, grpc::StatusCode::INTERNAL, "INTERNAL_ERROR");
    ExpectScrubbed(status);
    server.ExpectIdle();
    EXPECT_EQ(server.observer().records().back().status.message(), kSecret) << "the log has it";
  };
  fail(engine::Submitted::kLaunch, 1);
  if (staged()) {
    fail(engine::Submitted::kCopyIn, 1);
    fail(engine::Submitted::kCopyIn, 20);
    fail(engine::Submitted::kCopyOut, 1);
  }
  EXPECT_FALSE(server.engine().stats().device_failed);
  ExpectUnharmed(server);
}

TEST_P(DeviceErrors, FaultWhileOutputStreams) {
  auto faults = std::make_shared<engine::Faults>();
  TestServer server(engine::MakeFaulty(device(), faults), {});
  faults->FailNth(engine::Submitted::kLaunch, 2, Hiccup());
  const std::string data = Floats(4'000'000, 1);
  RawStream raw(server.Connect());
  // The leading axis stays, so that the first ranges leave before a later one fails.
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {40, 1000, 100}, {0, 2, 1})));
  std::thread writer([&] { raw.SendAll(0, data, 100'000); });
  const auto status = raw.Drain();
  writer.join();
  ExpectError(status, grpc::StatusCode::INTERNAL, "INTERNAL_ERROR");
  ExpectScrubbed(status);
  ExpectUnharmed(server);
}

TEST_P(DeviceErrors, DeadDeviceEndsEveryJobOnce) {
  auto faults = std::make_shared<engine::Faults>();
  TestServer::Options options;
  options.engine.max_in_flight = 4;  // three bulk jobs run, more wait
  TestServer server(engine::MakeFaulty(device(), faults), options);
  std::atomic<int> handled{0};
  std::string handler_message;
  server.engine().SetFailureHandler([&](const Status& why) {
    handler_message = why.message();
    ++handled;
  });
  const std::string data = Floats(300'000, 1);

  RawStream launched(server.Connect()), fresh(server.Connect()), queued(server.Connect());
  ASSERT_TRUE(launched.Open(TransposeOpen(v1::DTYPE_F32, {30, 100, 100}, {0, 2, 1})));
  ASSERT_TRUE(launched.SendAll(0, data, 1 << 16, 0, 1 << 16)) << "a block: copied, and its ranges launched";
  ASSERT_TRUE(Eventually([&] {
    return faults->count(staged() ? engine::Submitted::kCopyIn : engine::Submitted::kLaunch) > 0 || !staged();
  }));
  ASSERT_TRUE(fresh.OpenAndSend(RmseOpen(v1::DTYPE_F32, kNoSmallJob)));
  RawStream killer(server.Connect()), silent(server.Connect());
  ASSERT_TRUE(killer.OpenAndSend(RmseOpen(v1::DTYPE_F32, kNoSmallJob), data));
  ASSERT_TRUE(server.InFlight(3));
  ASSERT_TRUE(silent.Open(RmseOpen(v1::DTYPE_F32, kNoSmallJob)));
  std::thread waiter([&] { EXPECT_TRUE(queued.OpenAndSend(RmseOpen(v1::DTYPE_F32, kNoSmallJob))); });
  ASSERT_TRUE(Eventually([&] { return server.engine().stats().jobs_queued == 1; }));

  faults->FailNth(engine::Submitted::kLaunch, 1, Broken(), true);
  killer.SendAll(0, data, 1 << 20, 1);
  killer.SendAll(1, data);
  const auto killed = killer.End();
  ExpectError(killed, grpc::StatusCode::INTERNAL, "DEVICE_FAILED");
  ExpectScrubbed(killed);
  const auto never_launched = fresh.Drain();
  ExpectError(never_launched, grpc::StatusCode::UNAVAILABLE, "DEVICE_FAILED");
  ExpectScrubbed(never_launched);
  waiter.join();
  for (RawStream* stream : {&queued, &silent})
    ExpectError(stream->Drain(), grpc::StatusCode::UNAVAILABLE, "DEVICE_FAILED");
  if (staged()) {
    const auto lost = launched.Drain();
    ExpectError(lost, grpc::StatusCode::INTERNAL, "DEVICE_FAILED");
    ExpectScrubbed(lost);
  }
  launched.context.TryCancel();

  RawStream late(server.Connect());
  EXPECT_FALSE(late.Open(RmseOpen(v1::DTYPE_F32, kNoSmallJob)));
  ExpectError(late.End(), grpc::StatusCode::UNAVAILABLE, "DEVICE_FAILED");
  grpc::ClientContext context;
  v1::RmseResponse response;
  ExpectError(
      v1::Kernels::NewStub(server.Connect())->Rmse(&context, RmseCall({1}, "1234", "1234"), &response),
      grpc::StatusCode::UNAVAILABLE, "DEVICE_FAILED");
  EXPECT_TRUE(Eventually([&] { return handled == 1; })) << "after the jobs were told";
  EXPECT_EQ(handler_message, kSecret) << "the operator is told why";
  EXPECT_TRUE(server.engine().stats().device_failed);
  server.ExpectIdle();
}

}  // namespace
}  // namespace tilewire::testing

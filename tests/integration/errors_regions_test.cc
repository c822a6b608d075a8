// What is wrong about regions, who is told what, and that the server lives on.
#include <atomic>
#include <future>
#include <limits>

#include "tests/devices/forwarding_device.h"
#include "tests/integration/regions.h"
#include "tests/unit/engine_time_testing.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

class RegionErrors : public OnBoth {
 protected:
  RegionErrors() { id = me.Register(file); }
  ~RegionErrors() override {
    EXPECT_TRUE(me.Unregister(id).ok()) << "it stayed, whatever happened";
    ExpectNoRegions(server);
  }
  /// A transpose of 100 × 100 f32, which lie at `offset` of a region.
  static v1::Open Turn(const std::string& region, uint64_t offset = 0) {
    v1::Open open = TransposeOpen(v1::DTYPE_F32, {100, 100});
    ReferToRegion(&open, 0, region, offset);
    return open;
  }
  void ExpectRefused(const v1::RegisterRequest& request, StatusCode code, const std::string& reason,
                     const std::string& field, const std::string& value = "*") {
    v1::RegionInfo info;
    ExpectError(me.Register(request, &info), code, reason, field, value);
  }
  TestServer server{device(), RegionOptions()};
  RegionCaller me{server}, other{server, "other"};
  SharedFile file{80'000};
  std::string id;
};
TILEWIRE_ON_STAGED(RegionErrors);

TEST_P(RegionErrors, RegisteringWhatIsNotThereOrNotAllowed) {
  const auto ask = [this](const std::string& name, uint64_t offset, uint64_t bytes) {
    v1::RegisterRequest request = RegionCaller::RequestFor(file);
    request.mutable_shared_memory()->set_name(name);
    request.mutable_shared_memory()->set_offset(offset);
    request.mutable_shared_memory()->set_bytes(bytes);
    return request;
  };
  const auto bad = StatusCode::INVALID_ARGUMENT;
  const std::string none = std::string(kRegionPrefix) + "none", name = "shared_memory.name";
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  ExpectRefused(ask(none, 0, 1), StatusCode::NOT_FOUND, "REGION", name, none);
  ExpectRefused(ask("/elsewhere", 0, 1), bad, "BAD_VALUE", name, "/elsewhere");
  ExpectRefused(ask(std::string(kRegionPrefix) + "../x", 0, 1), bad, "BAD_VALUE", name);
  ExpectRefused(ask(file.name(), 0, 80'001), bad, "BAD_VALUE", "shared_memory.bytes", "80001");
  ExpectRefused(ask(file.name(), 79'999, 2), bad, "BAD_VALUE", "shared_memory.bytes", "2");
  ExpectRefused(ask(file.name(), 0, 0), bad, "BAD_VALUE", "shared_memory.bytes", "0");
  ExpectRefused(ask(file.name(), 80'000, 1), bad, "BAD_VALUE", "shared_memory.offset", "80000");
  ExpectRefused(ask(file.name(), kMost, 2), bad, "BAD_VALUE", "shared_memory.offset");
  ExpectRefused(ask(file.name(), 1, kMost), StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "shared_memory.bytes");
  v1::RegisterRequest request = RegionCaller::RequestFor(file);
  request.set_ttl_seconds(-1);
  ExpectRefused(request, bad, "BAD_VALUE", "ttl_seconds");
  ExpectRefused(v1::RegisterRequest(), bad, "BAD_VALUE", "memory", "not set");
  for (const std::string method : {"Register", "Unregister", "List"}) {
    ByteCall broken(me.channel, "/tilewire.v1.Regions/" + method);
    broken.context.AddMetadata("who", "me");
    ExpectError(broken.Unary("\x0a\x7fshort").status, bad, "BAD_MESSAGE");
  }
}

TEST_P(RegionErrors, OffUnlessAllowed) {
  TestServer off(device(), ArrayOptions());
  RegionCaller caller(off);
  v1::RegionInfo info;
  ExpectError(caller.Register(RegionCaller::RequestFor(file), &info), StatusCode::UNIMPLEMENTED,
              "REGIONS_OFF");
  EXPECT_EQ(caller.List().regions_size(), 0);
  ExpectUnharmed(off);
}

TEST_P(RegionErrors, UnknownForeignAndOthersRegions) {
  const std::string unknown = server.engine().instance() + "-0123456789abcdef", foreign = "0123-4567";
  const std::string field = "references[0].region.region";
  ExpectError(me.Execute(Turn(unknown)).status, StatusCode::NOT_FOUND, "REGION", field, unknown);
  ExpectError(me.Execute(Turn(foreign)).status, StatusCode::NOT_FOUND, "WRONG_INSTANCE", field, foreign);
  ExpectError(other.Execute(Turn(id)).status, StatusCode::NOT_FOUND, "REGION", field, id);
  v1::Open open = Turn(id);
  At(open.mutable_options()->mutable_result_region(), unknown, 0);
  ExpectError(me.Execute(open).status, StatusCode::NOT_FOUND, "REGION", "options.result_region.region",
              unknown);
  v1::TransposeRequest request;
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {100, 100});
  At(request.mutable_input()->mutable_region(), unknown, 0);
  v1::TransposeResponse response;
  ExpectError(me.kernels->Transpose(me.Context().get(), request, &response), StatusCode::NOT_FOUND, "REGION",
              "input.region.region", unknown);
}

TEST_P(RegionErrors, PlacesThatAreNeverRight) {
  const auto expect = [&](const v1::Open& open, const std::string& field, const std::string& value) {
    ExpectError(me.Execute(open).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE", field, value);
  };
  expect(Turn(id, 40'001), "references[0].region.offset", "40001");
  expect(Turn(id, ~uint64_t{0}), "references[0].region.offset", "18446744073709551615");
  expect(Turn(id, ~uint64_t{0} - 39'999), "references[0].region.offset", "18446744073709511616");
  v1::Open open = Turn(id);
  At(open.mutable_options()->mutable_result_region(), id, 40'001);
  expect(open, "options.result_region.offset", "40001");
  open.mutable_options()->mutable_result_region()->set_offset(40'000);
  EXPECT_TRUE(me.Execute(open).status.ok());
  open.mutable_options()->mutable_store();
  expect(open, "options.result_region", "set");
  open = Turn(id);
  open.mutable_references(0)->set_array("a");
  expect(open, "references[0]", "an array and a region");
  open = Turn(id);
  ReferToRegion(&open, 0, id, 0);
  expect(open, "references[1].operand", "0");
  open = Turn(id);
  open.clear_operands();  // of bytes in a region nobody knows what they are
  expect(open, "open.operands", "0 specs");
  const std::string readable = me.Register(file, false);
  open = Turn(id);
  At(open.mutable_options()->mutable_result_region(), readable, 0);
  expect(open, "options.result_region.region", readable);
  EXPECT_TRUE(me.Unregister(readable).ok());
  // Bytes for an operand that needs none, beside one that does.
  open = RmseOpen(v1::DTYPE_F32, {100, 100});
  ReferToRegion(&open, 1, id, 0);
  ExpectError(me.Execute(open, {Floats(10'000, 1), "1234"}).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE",
              "chunk.operand", "1");
  v1::TransposeRequest request;
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {100, 100});
  At(request.mutable_input()->mutable_region(), id, 0);
  request.mutable_input()->set_data("1234");
  v1::TransposeResponse response;
  ExpectError(me.kernels->Transpose(me.Context().get(), request, &response), StatusCode::INVALID_ARGUMENT,
              "BAD_VALUE", "input.data", "4 bytes long");
}

TEST_P(RegionErrors, ShrunkBeforeAndUnlinked) {
  SharedFile victim(80'000);
  const std::string bytes = Floats(10'000, 4);
  victim.Write(0, bytes.data(), bytes.size());
  const std::string region = me.Register(victim);
  victim.Unlink();
  const auto done = me.Execute(Turn(region));
  EXPECT_TRUE(done.status.ok()) << "unlinked it stays: " << done.status.error_message();
  for (const size_t left : {size_t{79'999}, size_t{0}}) {
    victim.Resize(left);
    ExpectError(me.Execute(Turn(region)).status, StatusCode::FAILED_PRECONDITION, "REGION_SHRUNK");
    v1::Open open = Turn(id);
    At(open.mutable_options()->mutable_result_region(), region, 0);
    ExpectError(me.Execute(open).status, StatusCode::FAILED_PRECONDITION, "REGION_SHRUNK");
  }
  EXPECT_TRUE(me.Unregister(region).ok());
}

TEST_P(RegionErrors, ShrunkDuringJobs) {
  engine::SlowOptions slow{.copy_in = std::chrono::milliseconds(1), .copy_out = std::chrono::milliseconds(1)};
  TestServer slowly(engine::MakeSlow(device(), slow), RegionOptions());
  RegionCaller caller(slowly);
  const std::vector<int64_t> shape{2000, 1000};
  constexpr size_t kBytes = 8'000'000;
  for (const bool result : {false, true})
    for (int round = 0; round < 4; ++round) {
      SharedFile victim(kBytes), good(kBytes);
      const std::string bad_id = caller.Register(victim), good_id = caller.Register(good);
      v1::Open open = TransposeOpen(v1::DTYPE_F32, shape);
      ReferToRegion(&open, 0, result ? good_id : bad_id, 0);
      At(open.mutable_options()->mutable_result_region(), result ? bad_id : good_id, 0);
      const auto context = caller.Context();
      const auto stream = caller.kernels->Execute(context.get());
      v1::ExecuteRequest request;
      *request.mutable_open() = open;
      stream->Write(request);
      stream->WritesDone();
      v1::ExecuteResponse response;
      ASSERT_TRUE(stream->Read(&response) && response.has_opened());
      victim.ResizeElsewhere(round * 4096);
      while (stream->Read(&response)) {
      }
      // It may have been done before: then it was right. Else it says so.
      if (const auto status = stream->Finish(); !status.ok())
        ExpectError(status, StatusCode::FAILED_PRECONDITION, "REGION_SHRUNK");
      EXPECT_TRUE(caller.Unregister(bad_id).ok());
      EXPECT_TRUE(caller.Unregister(good_id).ok());
    }
  ExpectNoRegions(slowly);
}

TEST_P(RegionErrors, QuotasAreOfEach) {
  SharedFile large(100 << 20);
  const std::string first = me.Register(large, false);
  v1::RegionInfo info;
  ExpectError(me.Register(RegionCaller::RequestFor(large), &info), StatusCode::RESOURCE_EXHAUSTED, "BUSY");
  const std::string others = other.Register(large, false);
  EXPECT_TRUE(me.Unregister(first).ok());
  EXPECT_TRUE(other.Unregister(others).ok());
}

TEST_P(RegionErrors, ExpireWhenNobodyUsesThem) {
  v1::RegisterRequest request = RegionCaller::RequestFor(file);
  request.set_ttl_seconds(60);
  ManualTime time;
  auto options = RegionOptions();
  options.engine.time = &time;
  TestServer timed(device(), options);
  RegionCaller caller(timed);
  v1::RegionInfo info;
  ASSERT_TRUE(caller.Register(request, &info).ok());
  engine::testing::Pass(time, timed.engine().timer(), std::chrono::seconds(59));
  EXPECT_EQ(timed.engine().stats().regions, 1u);
  engine::testing::Pass(time, timed.engine().timer(), std::chrono::seconds(1));
  EXPECT_EQ(timed.engine().stats().regions_expired, 1u);
  ExpectError(caller.Execute(Turn(info.region())).status, StatusCode::NOT_FOUND, "REGION",
              "references[0].region.region", info.region());
}

TEST_P(RegionErrors, CancelledClientsLeaveNothing) {
  engine::SlowOptions slow{.copy_in = std::chrono::milliseconds(2)};
  TestServer slowly(engine::MakeSlow(device(), slow), RegionOptions());
  RegionCaller caller(slowly);
  SharedFile large(16'000'000);
  const std::string region = caller.Register(large);
  for (int i = 0; i < 4; ++i) {
    v1::Open open = TransposeOpen(v1::DTYPE_F32, {2000, 1000});
    ReferToRegion(&open, 0, region, 0);
    At(open.mutable_options()->mutable_result_region(), region, 8'000'000);
    const auto context = caller.Context();
    const auto stream = caller.kernels->Execute(context.get());
    v1::ExecuteRequest request;
    *request.mutable_open() = open;
    stream->Write(request);
    v1::ExecuteResponse response;
    ASSERT_TRUE(stream->Read(&response) && response.has_opened());
    context->TryCancel();
    const auto status = stream->Finish();  // a client that is slow to cancel may find it done
    EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::CANCELLED) << status.error_message();
  }
  EXPECT_TRUE(Eventually([&] { return caller.List().regions(0).users() == 0; }));
  EXPECT_TRUE(caller.Unregister(region).ok());
  ExpectNoRegions(slowly);
}

/// Pins nothing until it is told to.
class PinsWhenTold final : public engine::ForwardingDevice {
 public:
  PinsWhenTold(std::unique_ptr<engine::Device> device, std::atomic<int>* asked, std::shared_future<void> go)
      : ForwardingDevice(std::move(device)), asked_(asked), go_(std::move(go)) {}
  Result<engine::Memory> PinHost(std::byte* data, size_t bytes, bool writable) override {
    ++*asked_;
    go_.wait();
    return ForwardingDevice::PinHost(data, bytes, writable);
  }

 private:
  std::atomic<int>* const asked_;
  const std::shared_future<void> go_;
};

TEST_P(RegionErrors, WhatAClientThatIsGoneRegisteredIsTakenBack) {
  std::atomic<int> asked{0};
  std::promise<void> go;
  TestServer slowly(std::make_unique<PinsWhenTold>(device(), &asked, go.get_future().share()),
                    RegionOptions());
  RegionCaller caller(slowly);
  grpc::ClientContext context;
  context.AddMetadata("who", "me");
  auto registering = std::async(std::launch::async, [&] {
    v1::RegionInfo info;
    return caller.regions->Register(&context, RegionCaller::RequestFor(file), &info);
  });
  EXPECT_TRUE(Eventually([&] { return asked == 1; }));
  context.TryCancel();
  EXPECT_EQ(registering.get().error_code(), StatusCode::CANCELLED);
  for (int i = 0; i < 50; ++i) caller.List();  // over the same connection: the server knows it by then
  EXPECT_GT(slowly.engine().stats().region_bytes, 0U);
  go.set_value();
  ExpectNoRegions(slowly);
}

}  // namespace
}  // namespace tilewire::testing

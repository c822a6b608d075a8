// Device memory that clients register: nothing they say of it is believed, limits, lives and deaths.
#include <gtest/gtest.h>

#include <limits>

#include "server/base/limits.h"
#include "tests/unit/device_exports.h"
#include "tests/unit/engine_regions_testing.h"

namespace tilewire::engine {
namespace {

using tilewire::testing::DeviceExports;
using tilewire::testing::ExportedMemory;
using tilewire::testing::ExportsDevice;

class DeviceRegionStore : public ::testing::Test {
 protected:
  void ExpectRefused(const RegionRequest& request, Code code, const std::string& reason,
                     const std::string& field) {
    const auto facts = testing::Register(*store, request, "a");
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code(), code) << facts.error().ToString();
    EXPECT_EQ(facts.error().reason(), reason) << facts.error().ToString();
    EXPECT_TRUE(field.empty() || facts.error().detail()->field == field) << facts.error().ToString();
    EXPECT_EQ(exports.open(), 0);
    EXPECT_EQ(stats().regions, 0U);
  }
  EngineStats stats() const {
    EngineStats stats;
    store->Snapshot(&stats);
    return stats;
  }
  void TearDown() override {
    store->Close(Status(Code::kUnavailable, "CLOSED", "test"));
    EXPECT_TRUE(testing::Becomes([this] { return exports.open() == 0; }));
    testing::Flush(timer);
  }

  ManualTime time;
  Timer timer{&time};
  DeviceExports exports;
  ExportedMemory memory{&exports, 100'000};
  ExportsDevice device{MakeStaged(OpenCpuDevice(1)), &exports};
  std::unique_ptr<RegionStore> store =
      std::make_unique<RegionStore>("me", testing::DeviceOn(), &device, &timer);
};

TEST_F(DeviceRegionStore, NothingThatIsSaidOfItIsBelieved) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const auto bad = Code::kInvalidArgument;
  const auto ask = [this](uint64_t offset, uint64_t bytes) {
    RegionRequest request = testing::All(memory);
    request.offset = offset;
    request.bytes = bytes;
    return request;
  };
  ExpectRefused(ask(0, 0), bad, "BAD_VALUE", "device_memory.bytes");
  ExpectRefused(ask(0, 100'001), bad, "BAD_VALUE", "device_memory.bytes");
  ExpectRefused(ask(0, kMost), bad, "BAD_VALUE", "device_memory.bytes");
  ExpectRefused(ask(256, 100'000 - 255), bad, "BAD_VALUE", "device_memory.bytes");
  ExpectRefused(ask(kMost - 255, 256), bad, "BAD_VALUE", "device_memory.bytes");
  ExpectRefused(ask(256, kMost - 255), bad, "BAD_VALUE", "device_memory.bytes");
  ExpectRefused(ask(100, 100), bad, "BAD_VALUE", "device_memory.offset");
  RegionRequest request = testing::All(memory);
  for (const std::string& handle : {std::string(), std::string("x"), memory.handle() + "x"}) {
    request.handle = handle;
    ExpectRefused(request, bad, "BAD_VALUE", "device_memory.handle");
  }
  request.handle = DeviceExports::None();
  ExpectRefused(request, bad, "BAD_VALUE", "device_memory.handle");
  request = testing::All(memory);
  request.device = "cuda:7";
  ExpectRefused(request, bad, "BAD_VALUE", "device_memory.device");
  request = testing::All(memory);
  request.seconds = -1;
  ExpectRefused(request, bad, "BAD_VALUE", "ttl_seconds");
  exports.Refuse(true);
  ExpectRefused(testing::All(memory), Code::kFailedPrecondition, "REGION_UNPINNABLE", "");
  exports.Refuse(false);
  request = ask(99'840, 160);  // the last place there is
  request.device = "cpu";
  EXPECT_TRUE(testing::Register(*store, request, "a"));
}

TEST_F(DeviceRegionStore, OffUnlessAllowedByItsOwnFlag) {
  store = std::make_unique<RegionStore>("me", testing::DeviceOn(false), &device, &timer);
  ExpectRefused(testing::All(memory), Code::kUnimplemented, "REGIONS_OFF", "");
  store = std::make_unique<RegionStore>("me", RegionLimits{.device = true}, &device, &timer);
  EXPECT_TRUE(testing::Register(*store, testing::All(memory), "a"));
  const auto shared = testing::Register(*store, {.name = "/x", .bytes = 1}, "a");
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().reason(), "REGIONS_OFF");
}

TEST_F(DeviceRegionStore, ACpuHasNone) {
  const auto cpu = OpenCpuDevice(1);
  store = std::make_unique<RegionStore>("me", testing::DeviceOn(), cpu.get(), &timer);
  ExpectRefused(testing::All(memory), Code::kFailedPrecondition, "REGION_UNPINNABLE", "");
}

TEST_F(DeviceRegionStore, CountsTowardsNumbersNotBytes) {
  const auto most = static_cast<size_t>(kMaxDeviceRegionsPerIdentity);
  std::vector<std::string> ids;
  for (size_t i = 0; i < most; ++i) {
    const auto region = testing::Register(*store, testing::All(memory), "a");
    ASSERT_TRUE(region) << region.error().ToString();
    ids.push_back(region->id);
  }
  EXPECT_EQ(testing::Register(*store, testing::All(memory), "a").error().reason(), "BUSY");
  EXPECT_EQ(stats().region_bytes, 0U);
  EXPECT_EQ(exports.open(), kMaxDeviceRegionsPerIdentity);
  tilewire::testing::SharedFile file(4096);
  EXPECT_TRUE(testing::Register(*store, testing::All(file), "a")) << "of shared memory there may be more";
  EXPECT_TRUE(testing::Register(*store, testing::All(memory), "b"));
  EXPECT_EQ(store->List("a", 0, 1).held_bytes, 4096);
  EXPECT_TRUE(store->Unregister(ids[0], "a").ok());
  EXPECT_TRUE(
      testing::Becomes([&] { return testing::Register(*store, testing::All(memory), "a").has_value(); }));
}

TEST_F(DeviceRegionStore, UnregisteredInUseItIsClosedAndToldAfterTheLastUse) {
  const auto region = testing::Register(*store, testing::All(memory), "a");
  ASSERT_TRUE(region);
  EXPECT_EQ(store->Use(region->id, "b", "region").error().reason(), "REGION");
  auto use = store->Use(region->id, "a", "region");
  ASSERT_TRUE(use);
  std::promise<Status> told;
  std::promise<Status> foreign;
  store->Unregister(region->id, "b", [&](Status status) { foreign.set_value(std::move(status)); });
  EXPECT_EQ(foreign.get_future().get().reason(), "REGION");
  store->Unregister(region->id, "a", [&](Status status) {
    EXPECT_EQ(exports.open(), 0) << "told when it is closed";
    told.set_value(std::move(status));
  });
  EXPECT_EQ(store->Use(region->id, "a", "region").error().reason(), "REGION");
  EXPECT_EQ(exports.open(), 1);
  EXPECT_TRUE((*use)->Check().ok());
  EXPECT_EQ((*use)->data(), memory.data());
  use = Fail(Status());
  EXPECT_TRUE(told.get_future().get().ok());
}

TEST_F(DeviceRegionStore, ExpiresWithoutUse) {
  RegionRequest request = testing::All(memory);
  request.seconds = 60;
  const auto region = testing::Register(*store, request, "a");
  ASSERT_TRUE(region);
  testing::Pass(time, timer, std::chrono::seconds(60) - std::chrono::nanoseconds(1));
  EXPECT_TRUE(store->Use(region->id, "a", "region"));
  time.Advance(std::chrono::seconds(60));  // since that use
  EXPECT_EQ(store->Use(region->id, "a", "region").error().reason(), "REGION");
  EXPECT_TRUE(testing::Becomes([this] { return exports.open() == 0; }));
}

}  // namespace
}  // namespace tilewire::engine

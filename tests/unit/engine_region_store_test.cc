// The store of regions alone: what it refuses, limits, lives and deaths, and many threads.
#include "server/engine/stores/region_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "tests/unit/engine_regions_testing.h"

namespace tilewire::engine {
namespace {

using testing::All;
using testing::SharedFile;

constexpr int64_t kPage = 4096;

class RegionStoreTest : public ::testing::Test {
 protected:
  explicit RegionStoreTest(std::unique_ptr<Device> made = OpenCpuDevice(1)) : device(std::move(made)) {}
  void Make(RegionLimits limits) {
    limits.prefix = testing::kRegionPrefix;
    store = std::make_unique<RegionStore>("me", limits, device.get(), &timer);
  }
  void TearDown() override {
    if (!store) return;
    store->Close(Status(Code::kUnavailable, "CLOSED", "test"));
    EXPECT_TRUE(testing::Becomes([this] { return stats().region_bytes == 0 && stats().regions == 0; }));
    testing::Flush(timer);
  }
  EngineStats stats() const {
    EngineStats stats;
    store->Snapshot(&stats);
    return stats;
  }
  Result<RegionFacts> Register(const RegionRequest& request, const std::string& who = "a") {
    return testing::Register(*store, request, who);
  }
  /// What a refusal says: code, reason, field.
  void ExpectRefused(const RegionRequest& request, Code code, const std::string& reason,
                     const std::string& field) {
    const auto facts = Register(request);
    ASSERT_FALSE(facts) << request.name;
    EXPECT_EQ(facts.error().code(), code) << facts.error().ToString();
    EXPECT_EQ(facts.error().reason(), reason);
    EXPECT_EQ(facts.error().detail()->field, field);
    EXPECT_EQ(stats().region_bytes, 0U) << facts.error().ToString();
  }

  ManualTime time;
  Timer timer{&time};
  std::unique_ptr<Device> device;
  std::unique_ptr<RegionStore> store;
};

TEST_F(RegionStoreTest, OneOwnerHasNoMoreThanHisNumber) {
  Make({.bytes = 1 << 20, .count_per_identity = 2});
  SharedFile file(kPage);
  const RegionRequest request{.name = file.name(), .bytes = 1};
  const auto first = Register(request);
  ASSERT_TRUE(first && Register(request));
  const auto over = Register(request);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().reason(), "BUSY");
  EXPECT_NE(std::string(over.error().message()).find("--regions-per-identity"), std::string::npos);
  EXPECT_TRUE(Register(request, "b"));
  EXPECT_TRUE(store->Unregister(first->id, "a").ok());
  EXPECT_TRUE(testing::Becomes([&] { return Register(request).has_value(); })) << "it goes with its memory";
}

TEST_F(RegionStoreTest, RefusesNamesThatAreNoneOfItsOwn) {
  Make({.bytes = 1 << 20});
  SharedFile file(kPage);
  const std::string prefix = testing::kRegionPrefix;
  for (const std::string& name :
       {std::string(), std::string("/"), file.name().substr(1), "/other" + file.name().substr(1),
        prefix + "../x", prefix + "a/b", prefix + "a b", prefix + std::string("a\0b", 3), prefix + "\xc3\xa4",
        prefix + std::string(300, 'x'), "/" + file.name()})
    ExpectRefused({.name = name, .bytes = 1}, Code::kInvalidArgument, "BAD_VALUE", "shared_memory.name");
  ExpectRefused({.name = prefix + "none", .bytes = 1}, Code::kNotFound, "REGION", "shared_memory.name");
  // What is there under such a name, but is no memory: nothing waits for a writer of a pipe.
  const std::string pipe = testing::kRegionPrefix + std::string("pipe"), path = "/dev/shm" + pipe;
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const bool writable : {false, true})
    ExpectRefused({.name = pipe, .bytes = 1, .writable = writable}, Code::kInvalidArgument, "BAD_VALUE",
                  "shared_memory.name");
  unlink(path.c_str());
  ASSERT_EQ(symlink("/etc/hostname", path.c_str()), 0);
  ExpectRefused({.name = pipe, .bytes = 1}, Code::kInvalidArgument, "BAD_VALUE", "shared_memory.name");
  unlink(path.c_str());
}

TEST_F(RegionStoreTest, RefusesBytesThatAreNotThere) {
  Make({.bytes = 1 << 20});
  SharedFile file(3 * kPage);
  const auto ask = [&file](uint64_t offset, uint64_t bytes) {
    return RegionRequest{.name = file.name(), .offset = offset, .bytes = bytes};
  };
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  ExpectRefused(ask(0, 0), Code::kInvalidArgument, "BAD_VALUE", "shared_memory.bytes");
  ExpectRefused(ask(0, 3 * kPage + 1), Code::kInvalidArgument, "BAD_VALUE", "shared_memory.bytes");
  ExpectRefused(ask(1, 3 * kPage), Code::kInvalidArgument, "BAD_VALUE", "shared_memory.bytes");
  ExpectRefused(ask(3 * kPage, 1), Code::kInvalidArgument, "BAD_VALUE", "shared_memory.offset");
  ExpectRefused(ask(kMost, 1), Code::kInvalidArgument, "BAD_VALUE", "shared_memory.offset");
  ExpectRefused(ask(kMost - 4, 100), Code::kInvalidArgument, "BAD_VALUE", "shared_memory.offset");
  ExpectRefused(ask(1, kMost), Code::kResourceExhausted, "LIMIT", "shared_memory.bytes");
  for (const double seconds : {-1.0, 0.0001, 1e9, std::nan("")}) {
    RegionRequest request = ask(0, kPage);
    request.seconds = seconds;
    ExpectRefused(request, Code::kInvalidArgument, "BAD_VALUE", "ttl_seconds");
  }
  EXPECT_TRUE(Register(ask(3 * kPage - 1, 1))) << "any byte may be the first";
}

TEST_F(RegionStoreTest, LimitsAreOfEachAndOfAll) {
  Make({.bytes = 8 * kPage, .bytes_per_identity = 5 * kPage});
  SharedFile large(9 * kPage), file(3 * kPage);
  EXPECT_EQ(Register(All(large)).error().reason(), "LIMIT");
  EXPECT_EQ(Register({.name = large.name(), .bytes = 6 * kPage}).error().reason(), "LIMIT");
  const auto first = Register(All(file)), second = Register(All(file), "b");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(Register(All(file)).error().reason(), "BUSY") << "of one";
  EXPECT_EQ(Register(All(file), "c").error().reason(), "BUSY") << "of all";
  EXPECT_EQ(stats().region_bytes, 6U * kPage);
  EXPECT_TRUE(store->Unregister(first->id, "a").ok());
  EXPECT_TRUE(testing::Becomes([this] { return stats().region_bytes == 3U * kPage; }));
  // Bytes that straddle pages take those pages.
  ASSERT_TRUE(Register({.name = file.name(), .offset = kPage - 1, .bytes = 2}));
  EXPECT_EQ(stats().region_bytes, 5U * kPage);
  EXPECT_EQ(store->List("a", 0, 9).held_bytes, 2 * kPage);
}

TEST_F(RegionStoreTest, TheSameMemoryTwiceIsTwoRegions) {
  Make({.bytes = 1 << 20});
  SharedFile file(2 * kPage);
  const auto one = Register(All(file)), two = Register(All(file, 100));
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->id, two->id);
  file.data()[100] = std::byte{42};
  const auto use = store->Use(*&one->id, "a", "f"), other = store->Use(two->id, "a", "f");
  ASSERT_TRUE(use && other);
  EXPECT_NE((*use)->data(), (*other)->data());
  EXPECT_EQ((*use)->data()[100], std::byte{42});
  EXPECT_EQ((*other)->data()[0], std::byte{42});
  EXPECT_TRUE(store->Unregister(one->id, "a").ok());
  EXPECT_EQ(store->Unregister(one->id, "a").reason(), "REGION");
  EXPECT_TRUE(store->Use(two->id, "a", "f"));
}

TEST_F(RegionStoreTest, UnlinkedItStaysAndShrunkItIsRefused) {
  Make({.bytes = 1 << 20});
  SharedFile file(4 * kPage);
  const auto region = Register(All(file, kPage));
  ASSERT_TRUE(region);
  file.Unlink();
  EXPECT_TRUE(store->Use(region->id, "a", "f"));
  EXPECT_EQ(Register(All(file)).error().reason(), "REGION") << "the name is gone";
  file.Resize(4 * kPage - 1);
  const auto refused = store->Use(region->id, "a", "f");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(refused.error().reason(), "REGION_SHRUNK");
  file.Resize(4 * kPage);
  EXPECT_TRUE(store->Use(region->id, "a", "f"));
}

TEST_F(RegionStoreTest, OthersRegionsAreAsUnknownAsNone) {
  Make({.bytes = 1 << 20});
  SharedFile file(kPage);
  const auto region = Register(All(file));
  ASSERT_TRUE(region);
  EXPECT_EQ(region->id.rfind("me-", 0), 0U);
  for (const std::string& id : {region->id, std::string("me-0123456789abcdef")}) {
    EXPECT_EQ(store->Use(id, "b", "f").error().reason(), "REGION");
    EXPECT_EQ(store->Unregister(id, "b").code(), Code::kNotFound);
  }
  EXPECT_EQ(store->Use("you-1", "a", "f").error().reason(), "WRONG_INSTANCE");
  EXPECT_EQ(store->Use(std::string(65, 'x'), "a", "f").error().reason(), "BAD_VALUE");
  EXPECT_TRUE(store->List("b", 0, 9).items.empty());
  ASSERT_EQ(store->List("a", 0, 9).items.size(), 1U);
  EXPECT_EQ(store->List("a", 0, 9).items[0].request.name, file.name());
}

TEST_F(RegionStoreTest, UnusedTheyExpireAndUseKeepsThem) {
  Make({.bytes = 1 << 20});
  SharedFile file(kPage);
  RegionRequest request = All(file);
  request.seconds = 60;
  const auto used = Register(request), idle = Register(request);
  ASSERT_TRUE(used && idle);
  Result<RegionUse> use = store->Use(used->id, "a", "f");
  ASSERT_TRUE(use);
  const auto pass = [this](Clock::duration by) { testing::Pass(time, timer, by); };
  constexpr std::chrono::seconds kLife(60);
  constexpr std::chrono::nanoseconds kMoment(1);
  pass(kLife - kMoment);
  EXPECT_EQ(stats().regions_expired, 0U);
  EXPECT_EQ(store->List("a", 0, 9).items.size(), 2U);
  pass(kMoment);
  EXPECT_EQ(stats().regions_expired, 1U);
  EXPECT_EQ(store->Use(idle->id, "a", "f").error().reason(), "REGION");
  pass(3 * kLife);
  ASSERT_EQ(store->List("a", 0, 9).items.size(), 1U) << "in use";
  EXPECT_EQ(store->List("a", 0, 9).items[0].users, 1U);
  use = Fail(Status());
  pass(kLife - kMoment);
  EXPECT_EQ(stats().regions_expired, 1U) << "its time begins anew with the end of its last use";
  pass(kMoment);
  EXPECT_EQ(stats().regions_expired, 2U);
  EXPECT_TRUE(testing::Becomes([this] { return stats().region_bytes == 0; }));
}

TEST_F(RegionStoreTest, WhatIsUsedGoesWithItsLastUse) {
  Make({.bytes = 1 << 20});
  SharedFile file(kPage);
  file.data()[7] = std::byte{9};
  const auto region = Register(All(file));
  ASSERT_TRUE(region);
  auto use = store->Use(region->id, "a", "f");
  ASSERT_TRUE(use);
  EXPECT_TRUE(store->Unregister(region->id, "a").ok());
  EXPECT_EQ(store->Use(region->id, "a", "f").error().reason(), "REGION");
  EXPECT_EQ(stats().regions, 0U);
  EXPECT_EQ(stats().region_bytes, 1U * kPage);
  EXPECT_EQ((*use)->data()[7], std::byte{9}) << "still mapped";
  use = Fail(Status());
  EXPECT_TRUE(testing::Becomes([this] { return stats().region_bytes == 0; }));
}

TEST_F(RegionStoreTest, OffIsOff) {
  RegionStore off("me", {.bytes = 1 << 20}, device.get(), &timer);
  SharedFile file(kPage);
  const auto refused = testing::Register(off, All(file));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnimplemented);
  EXPECT_EQ(refused.error().reason(), "REGIONS_OFF");
}

TEST_F(RegionStoreTest, MemoryThatCannotBePinnedIsGivenBack) {
  const auto shortage = std::make_shared<Shortage>();
  device = MakeOutOfMemory(std::move(device), shortage);
  Make({.bytes = 1 << 20});
  SharedFile file(kPage);
  shortage->FailNthPinned(1);
  EXPECT_EQ(Register(All(file)).error().reason(), "BUSY");
  EXPECT_EQ(stats().region_bytes, 0U);
  EXPECT_TRUE(Register(All(file)));
}

TEST_F(RegionStoreTest, ManyThreadsLeaveNothingBehind) {
  Make({.bytes = 40 * kPage, .bytes_per_identity = 20 * kPage});
  SharedFile file(8 * kPage);
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 6; ++seed)
    threads.emplace_back([this, &file, seed] {
      std::mt19937_64 random(seed);
      const std::string who(1, static_cast<char>('a' + seed % 3));
      std::vector<RegionUse> uses;
      for (int step = 0; step < 300; ++step) {
        time.Advance(std::chrono::microseconds(random() % 200));
        const RegionPage page = store->List(who, 0, 50);
        const std::string id = page.items.empty() ? "me-0" : page.items[random() % page.items.size()].id;
        RegionRequest request = All(file, random() % (8 * kPage), random() % 2 == 0);
        if (random() % 3 == 0) request.seconds = 0.001 * static_cast<double>(1 + random() % 3);
        switch (random() % 4) {
          case 0:
            (void)Register(request, who).has_value();
            break;
          case 1:
            if (auto use = store->Use(id, who, "f")) uses.push_back(*std::move(use));
            break;
          case 2:
            (void)store->Unregister(id, who).ok();
            break;
          default:
            uses.clear();
        }
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tilewire::engine

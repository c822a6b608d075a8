// Shared memory through the client library: the same bits as by every other way, and no byte on the wire.
#include <dirent.h>

#include <cstring>

#include "client/cpp/client.h"
#include "tests/integration/regions.h"

namespace tilewire::testing {
namespace {

using client::ArraySource;
using client::CallForm;
using client::CallOptions;
using client::RegionPlace;
using client::SharedRegion;

class RegionClient : public OnBoth {
 protected:
  SharedRegion Share(uint64_t bytes) {
    auto region = client_.Share(bytes);
    EXPECT_TRUE(region) << region.error().ToString();
    return region ? *std::move(region) : SharedRegion();
  }
  /// Names under which memory of this test's prefix is there.
  static int Names() {
    int count = 0;
    DIR* const directory = opendir("/dev/shm");
    while (const dirent* entry = readdir(directory))
      count += std::string_view(entry->d_name).starts_with(kRegionPrefix + 1) &&
               std::string_view(entry->d_name).size() == std::strlen(kRegionPrefix) - 1 + 16;
    closedir(directory);
    return count;
  }

  TestServer server_{device(), RegionOptions()};
  client::Client client_ = client::Client::Connect(server_.address(), {.metadata = {{"who", "me"}}});
};
TILEWIRE_ON_BOTH(RegionClient);

TEST_P(RegionClient, EveryWayHasTheSameBits) {
  for (const int64_t rows : {10, 3000}) {
    SCOPED_TRACE(rows);
    const ArraySpec spec = MakeSpec(DType::kF32, std::vector<int64_t>{rows, 700}).value();
    const auto count = static_cast<size_t>(rows) * 700;
    const std::string a = Floats(count, 1), b = Floats(count, 2);
    SharedRegion region = Share(3 * a.size());
    std::memcpy(region.data(), a.data(), a.size());
    std::memcpy(region.data() + a.size(), b.data(), b.size());
    const ArraySource in[] = {region.source(spec), region.source(spec, a.size())};
    const ArraySource memory[] = {ArraySource::FromMemory(spec, a.data()),
                                  ArraySource::FromMemory(spec, b.data())};
    auto kept = client_.Put(in[1]);  // from the region
    ASSERT_TRUE(kept) << kept.error().ToString();
    EXPECT_EQ(kept->reply.timing.bytes_in, 0u);
    const ArraySource stored = kept->array.source();
    for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {1}, {0}})
      for (const CallForm form : {CallForm::kAuto, CallForm::kStream}) {
        CallOptions options;
        options.form = form;
        const auto expected = client_.Rmse(memory[0], memory[1], {axes});
        const auto both = client_.Rmse(in[0], in[1], {axes}, options);
        const auto mixed = client_.Rmse(memory[0], in[1], {axes}, options);
        const auto beside = client_.Rmse(in[0], stored, {axes}, options);
        ASSERT_TRUE(expected && both && mixed && beside) << both.error().ToString();
        EXPECT_EQ(both->values, expected->values);
        EXPECT_EQ(mixed->values, expected->values);
        EXPECT_EQ(beside->values, expected->values);
        EXPECT_EQ(both->reply.timing.bytes_in, 0u);
        EXPECT_EQ(both->reply.timing.region_bytes_in, 2 * a.size());
        EXPECT_EQ(both->reply.streamed, form == CallForm::kStream) << "nothing crosses the wire";
      }
    for (const client::Operation& operation :
         std::vector<client::Operation>{client::TransposeOp{}, client::GaussianOp{0.5, 2}}) {
      const std::string expected = Collected([&](const client::Sink& sink) {
        return client_.Execute(operation, {memory, 1}, sink);
      });
      EXPECT_TRUE(expected == Collected([&](const client::Sink& sink) {
                    return client_.Execute(operation, {in, 1}, sink);
                  }));
      for (const bool sent : {false, true}) {
        std::memset(region.data() + 2 * a.size(), 0, a.size());
        const RegionPlace place = region.place(2 * a.size());
        const auto into = client_.ExecuteInto(operation, {sent ? memory : in, 1}, place);
        ASSERT_TRUE(into) << into.error().ToString();
        EXPECT_EQ(std::memcmp(region.data() + 2 * a.size(), expected.data(), expected.size()), 0);
        EXPECT_EQ(into->spec.bytes(), static_cast<int64_t>(expected.size()));
        EXPECT_EQ(into->timing.bytes_out, 0u);
        EXPECT_EQ(into->timing.region_bytes_out, expected.size());
      }
    }
  }
  ExpectNoRegions(server_);
}

TEST_P(RegionClient, OwnsWhatItShares) {
  {
    SharedRegion first = Share(1000), second = Share(5000);
    EXPECT_EQ(server_.engine().stats().regions, 2u);
    EXPECT_EQ(Names(), 0) << "the server has the memory: no name is needed";
    const std::string id = second.id();
    first = std::move(second);
    EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(first.id(), id);
    EXPECT_EQ(first.bytes(), 5000u);
    EXPECT_EQ(server_.engine().stats().regions, 1u);
    EXPECT_TRUE(first.Unregister().ok());
    EXPECT_TRUE(first.Unregister().ok()) << "once is enough";
    first.data()[4999] = 1;
    const ArraySpec spec = MakeSpec(DType::kU8, std::vector<int64_t>{5000}).value();
    const auto gone = client_.Rmse(first.source(spec), first.source(spec));
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().reason(), "REGION");
    second = Share(1);
  }
  ExpectNoRegions(server_);
}

TEST_P(RegionClient, ReadOnlyOnesTakeNoResults) {
  auto region = client_.Share(4000, {.writable = false, .prefix = kRegionPrefix});
  ASSERT_TRUE(region) << region.error().ToString();
  const ArraySpec spec = MakeSpec(DType::kF32, std::vector<int64_t>{10, 100}).value();
  const ArraySource in[] = {region->source(spec)};
  const auto refused = client_.ExecuteInto(client::TransposeOp{}, in, region->place());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail()->field, "options.result_region.region");
  EXPECT_TRUE(client_.Rmse(in[0], in[0]));
}

TEST_P(RegionClient, WhatCannotBeSharedLeavesNothing) {
  EXPECT_EQ(client_.Share(0).error().reason(), "BAD_VALUE");
  EXPECT_EQ(client_.Share(200 << 20).error().reason(), "LIMIT");
  EXPECT_EQ(client_.Share(1, {.prefix = "/elsewhere-"}).error().reason(), "BAD_VALUE");
  EXPECT_EQ(client_.Share(uint64_t{1} << 62).error().reason(), "BUSY") << "more than there is";
  TestServer off(device(), ArrayOptions());
  const auto refused = client::Client::Connect(off.address(), {.metadata = {{"who", "me"}}}).Share(1000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnimplemented);
  EXPECT_EQ(Names(), 0);
  ExpectNoRegions(server_);
}

}  // namespace
}  // namespace tilewire::testing

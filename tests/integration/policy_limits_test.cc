// What a rule of a policy bounds of each caller besides rates: streams, bytes on the device, arrays, regions.
#include "tests/integration/regions.h"
#include "tests/unit/certificates.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

constexpr int64_t kFloatsOfMiB = 1 << 18;  // 1 MiB of f32
const std::string kOneMiB = Floats(kFloatsOfMiB, 1);

class PolicyLimitsTest : public ::testing::Test {
 protected:
  /// A server where `me` has these limits, and others have none.
  TestServer::Options With(const std::string& limits) {
    files_.Write("policy.json", R"({"rules": [{"who": ["header:me"], "methods": ["*"], )" + limits +
                                    R"(}, {"who": ["*"], "methods": ["*"]}]})");
    auto options = RegionOptions();
    options.rpc.credentials.policy = files_.Path("policy.json");
    return options;
  }
  static grpc::Status Put(RegionCaller* caller, std::string* id = nullptr) {
    const auto stored = caller->Put(PutOpen(v1::DTYPE_F32, {kFloatsOfMiB}), kOneMiB);
    if (id) *id = stored.id;
    return stored.status;
  }
  template <typename Stream>
  static void AwaitOpened(Stream* stream, const v1::Open& open) {
    v1::ExecuteRequest request;
    *request.mutable_open() = open;
    v1::ExecuteResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    EXPECT_TRUE(response.has_opened());
  }
  static grpc::Status Register(RegionCaller* caller, const SharedFile& file) {
    v1::RegionInfo info;
    return caller->Register(RegionCaller::RequestFor(file), &info);
  }
  static void ExpectBusy(const grpc::Status& status, const std::string& said) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_NE(status.error_message().find(said), std::string::npos) << status.error_message();
    if (status.ok()) return;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "BUSY");
  }
  Files files_;
};

TEST_F(PolicyLimitsTest, Streams) {
  TestServer server(With(R"("streams": 2)"));
  RegionCaller me(server), other(server, "other");
  {
    const auto first = me.Context(), second = me.Context();
    const auto one = me.kernels->Execute(first.get()), two = me.arrays->Put(second.get());
    AwaitOpened(one.get(), RmseOpen(v1::DTYPE_F32, {10}));  // by then they count, in whatever order they came
    AwaitOpened(two.get(), PutOpen(v1::DTYPE_F32, {10}));
    ExpectError(Put(&me), StatusCode::RESOURCE_EXHAUSTED, "BUSY", "streams of yours", "2",
                "2 (streams in --policy)");
    v1::RmseResponse response;
    EXPECT_TRUE(
        me.kernels->Rmse(me.Context().get(), RmseCall({10}, Floats(10, 1), Floats(10, 2)), &response).ok())
        << "which is no stream";
    EXPECT_TRUE(Put(&other).ok());
    first->TryCancel();
    EXPECT_EQ(one->Finish().error_code(), StatusCode::CANCELLED);
    second->TryCancel();
    EXPECT_EQ(two->Finish().error_code(), StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Eventually([&] { return Put(&me).ok(); })) << "those that ended are given back";
  ExpectOnlyArrays(server);
}

TEST_F(PolicyLimitsTest, BytesOnTheDeviceOfJobsAndArraysTogether) {
  TestServer server(With(R"("device_bytes": "3MiB")"));
  RegionCaller me(server), other(server, "other");
  std::string id;
  EXPECT_TRUE(Put(&me).ok());
  EXPECT_TRUE(Put(&me, &id).ok());
  ExpectError(me.Execute(RmseOpen(v1::DTYPE_F32, {kFloatsOfMiB}), {kOneMiB, kOneMiB}).status,
              StatusCode::RESOURCE_EXHAUSTED, "BUSY", "device bytes of yours", "*",
              "3145728 (device_bytes in --policy)");
  EXPECT_TRUE(other.Execute(RmseOpen(v1::DTYPE_F32, {kFloatsOfMiB}), {kOneMiB, kOneMiB}).status.ok());
  ExpectError(me.Execute(RmseOpen(v1::DTYPE_F32, {4 * kFloatsOfMiB}), {}).status,
              StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "device bytes of yours", "*",
              "at most 3145728 (device_bytes in --policy)");
  EXPECT_TRUE(me.Delete(id).ok());
  EXPECT_TRUE(me.Execute(RmseOpen(v1::DTYPE_F32, {kFloatsOfMiB / 2}),
                         {kOneMiB.substr(0, kOneMiB.size() / 2), kOneMiB.substr(0, kOneMiB.size() / 2)})
                  .status.ok());
  ExpectOnlyArrays(server);
}

TEST_F(PolicyLimitsTest, Arrays) {
  TestServer server(With(R"("arrays": 2, "array_bytes": "3MiB")"));
  RegionCaller me(server), other(server, "other");
  std::string id;
  EXPECT_TRUE(Put(&me, &id).ok());
  EXPECT_TRUE(Put(&me).ok());
  ExpectBusy(Put(&me), "2 of your arrays are stored; allowed: 2 (arrays in --policy)");
  v1::ListResponse list;
  ASSERT_TRUE(me.ArrayCaller::List(0, "", &list).ok());
  EXPECT_EQ(list.quota_bytes(), 3u << 20);
  EXPECT_TRUE(me.Delete(id).ok());
  const auto put = [&](int64_t elements) {
    return me.Put(PutOpen(v1::DTYPE_F32, {elements}), Floats(static_cast<size_t>(elements), 1)).status;
  };
  ExpectBusy(put(5 * kFloatsOfMiB / 2), "allowed: 3145728 (array_bytes in --policy)");
  EXPECT_EQ(ErrorInfoOf(put(4 * kFloatsOfMiB)).reason(), "LIMIT");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Put(&other).ok());
}

TEST_F(PolicyLimitsTest, Regions) {
  TestServer server(With(R"("regions": 2, "region_bytes": "64KiB")"));
  RegionCaller me(server), other(server, "other");
  const SharedFile small(4096), large(63 << 10), over(128 << 10);
  EXPECT_TRUE(Register(&me, small).ok());
  ExpectBusy(Register(&me, large), "allowed: 65536 (region_bytes in --policy)");
  const auto never = Register(&me, over);
  EXPECT_EQ(ErrorInfoOf(never).reason(), "LIMIT") << never.error_message();
  EXPECT_EQ(ErrorInfoOf(never).metadata().at("allowed"), "at most 65536 (region_bytes in --policy)");
  EXPECT_TRUE(Register(&me, small).ok());
  ExpectBusy(Register(&me, small), "2 of your regions are registered; allowed: 2 (regions in --policy)");
  EXPECT_EQ(me.List().quota_bytes(), 65536u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Register(&other, over).ok());
}

}  // namespace
}  // namespace tilewire::testing

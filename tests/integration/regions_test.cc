// Regions over sockets: operands and results that never pass the wire, in every call form.
#include "tests/integration/regions.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

class Regions : public OnBoth {
 protected:
  TestServer server{device(), RegionOptions()};
  RegionCaller me{server}, other{server, "other"};
};
TILEWIRE_ON_BOTH(Regions);

TEST_P(Regions, AreListedAsTheyWereRegistered) {
  SharedFile file(1 << 20);
  std::vector<std::string> ids;
  for (const uint64_t offset : {0u, 5000u, 8192u}) {
    v1::RegisterRequest request = RegionCaller::RequestFor(file, offset > 0);
    request.mutable_shared_memory()->set_offset(offset);
    request.mutable_shared_memory()->set_bytes(1000 + offset);
    v1::RegionInfo info;
    const auto status = me.Register(request, &info);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(info.region().rfind(server.engine().instance() + "-", 0), 0u);
    EXPECT_EQ(info.shared_memory().SerializeAsString(), request.shared_memory().SerializeAsString());
    EXPECT_EQ(info.writable(), offset > 0);
    EXPECT_GT(info.expires_seconds(), 3000);
    ids.push_back(info.region());
  }
  const auto first = me.List(2), rest = me.List(2, first.next_page());
  ASSERT_EQ(first.regions_size(), 2);
  ASSERT_EQ(rest.regions_size(), 1);
  EXPECT_EQ(rest.next_page(), "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ((i < 2 ? first.regions(i) : rest.regions(0)).region(), ids[i]);
  EXPECT_EQ(first.registered_bytes(), server.engine().stats().region_bytes);
  EXPECT_EQ(first.quota_bytes(), 128u << 20);
  EXPECT_EQ(other.List().regions_size(), 0);
  v1::DescribeResponse description;
  const auto stub = v1::Device::NewStub(me.channel);
  ASSERT_TRUE(stub->Describe(me.Context().get(), {}, &description).ok());
  EXPECT_EQ(description.limits().region_prefix(), kRegionPrefix);
  EXPECT_EQ(description.budgets().regions(), 3u);
  EXPECT_EQ(description.budgets().region_bytes(), first.registered_bytes());
  for (const auto& id : ids) {
    ExpectError(other.Unregister(id), StatusCode::NOT_FOUND, "REGION", "region", id);
    EXPECT_TRUE(me.Unregister(id).ok());
    ExpectError(me.Unregister(id), StatusCode::NOT_FOUND, "REGION", "region", id);
  }
  ExpectNoRegions(server);
}

TEST_P(Regions, EveryCallFormHasTheSameBits) {
  // Small and large: 4.8 KB, 4 MB.
  for (const int64_t rows : {12, 10'000}) {
    SCOPED_TRACE(rows);
    const std::vector<int64_t> shape{rows, 100};
    const auto count = static_cast<size_t>(rows) * 100;
    const std::string a = Floats(count, 1), b = Floats(count, 2);
    const uint64_t at_a = 40, at_b = at_a + a.size() + 4, at_out = at_b + b.size() + 4;
    SharedFile file(at_out + a.size());
    file.Write(at_a, a.data(), a.size());
    file.Write(at_b, b.data(), b.size());
    const std::string id = me.Register(file);
    for (const std::vector<int>& axes : std::vector<std::vector<int>>{{}, {1}, {0}}) {
      const std::string expected = HostRmse(a, b, DType::kF32, shape, axes);
      // Streams: both operands, or one of them beside one that is sent; the result sent, or written.
      for (const unsigned mask : {1u, 2u, 3u})
        for (const bool written : {false, true}) {
          v1::Open open = RmseOpen(v1::DTYPE_F32, shape, axes);
          if (mask & 1) ReferToRegion(&open, 0, id, at_a);
          if (mask & 2) ReferToRegion(&open, 1, id, at_b);
          if (written) At(open.mutable_options()->mutable_result_region(), id, at_out);
          const auto done = me.Execute(open, {mask & 1 ? "" : a, mask & 2 ? "" : b});
          ASSERT_TRUE(done.status.ok()) << done.status.error_message();
          const auto& result = done.result.results(0);
          EXPECT_TRUE((written ? file.Read(at_out, expected.size()) : result.data()) == expected);
          EXPECT_EQ(result.has_region(), written);
          EXPECT_EQ(done.result.timing().bytes_in(), mask == 3 ? 0 : a.size());
          EXPECT_EQ(done.result.timing().region_bytes_in(), mask == 3 ? 2 * a.size() : a.size());
          EXPECT_EQ(done.result.timing().region_bytes_out(), written ? expected.size() : 0);
        }
      // Unary, whatever the size.
      v1::RmseRequest request = RmseCall(shape, "", "");
      for (const int axis : axes) request.mutable_op()->add_axes(axis);
      At(request.mutable_a()->mutable_region(), id, at_a);
      At(request.mutable_b()->mutable_region(), id, at_b);
      v1::RmseResponse response;
      auto status = me.kernels->Rmse(me.Context().get(), request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(response.result().data() == expected);
      EXPECT_EQ(response.timing().region_bytes_in(), 2 * a.size());
    }
    v1::TransposeRequest turn;
    SetSpec(turn.mutable_input()->mutable_spec(), v1::DTYPE_F32, shape);
    At(turn.mutable_input()->mutable_region(), id, at_a);
    At(turn.mutable_options()->mutable_result_region(), id, at_out);
    v1::TransposeResponse turned;
    auto status = me.kernels->Transpose(me.Context().get(), turn, &turned);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(file.Read(at_out, a.size()) == HostTranspose(a, DType::kF32, shape));
    EXPECT_EQ(turned.result().data(), "");
    EXPECT_EQ(turned.result().region().region(), id);
    EXPECT_EQ(turned.result().region().offset(), at_out);
    EXPECT_EQ(turned.result().spec().shape(0), 100);
    // A gaussian pdf, streamed and in a region, into the same place.
    const std::string expected = HostGaussian(a, DType::kF32, shape, 0.5, 2);
    for (const bool sent : {false, true}) {
      v1::Open open = GaussianOpen(v1::DTYPE_F32, shape, 0.5, 2);
      if (!sent) ReferToRegion(&open, 0, id, at_a);
      At(open.mutable_options()->mutable_result_region(), id, at_out);
      file.Write(at_out, b.data(), b.size());
      const auto done = me.Execute(open, {sent ? a : ""});
      ASSERT_TRUE(done.status.ok()) << done.status.error_message();
      EXPECT_TRUE(file.Read(at_out, a.size()) == expected);
      EXPECT_EQ(done.result.timing().bytes_out(), 0u);
    }
    EXPECT_TRUE(me.Unregister(id).ok());
    ExpectNoRegions(server);
  }
}

TEST_P(Regions, PutAndGetPassThem) {
  const std::string bytes = Floats(300'000, 3);
  SharedFile file(2 * bytes.size());
  file.Write(0, bytes.data(), bytes.size());
  const std::string id = me.Register(file);
  v1::Open open = PutOpen(v1::DTYPE_F32, {300, 1000});
  ReferToRegion(&open, 0, id, 0);
  const auto put = me.Put(open, "");
  ASSERT_TRUE(put.status.ok()) << put.status.error_message();
  v1::GetRequest get;
  get.set_array(put.id);
  At(get.mutable_options()->mutable_result_region(), id, bytes.size());
  const auto got = me.Get(get);
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.bytes, "");
  EXPECT_TRUE(file.Read(bytes.size(), bytes.size()) == bytes);
  // An array beside a region.
  v1::RmseRequest request = RmseCall({300, 1000}, "", "");
  request.mutable_a()->set_array(put.id);
  At(request.mutable_b()->mutable_region(), id, 0);
  v1::RmseResponse response;
  ASSERT_TRUE(me.kernels->Rmse(me.Context().get(), request, &response).ok());
  EXPECT_TRUE(response.result().data() == HostRmse(bytes, bytes, DType::kF32, {300, 1000}));
  EXPECT_TRUE(me.ArrayCaller::Delete(put.id).ok());
  EXPECT_TRUE(me.Unregister(id).ok());
  ExpectNoRegions(server);
}

TEST_P(Regions, UnregisteredInUseTheyStayForWhoUsesThem) {
  const std::vector<int64_t> shape{1000, 3000};
  const std::string a = Floats(3'000'000, 1), b = Floats(3'000'000, 2);
  SharedFile file(a.size());
  file.Write(0, a.data(), a.size());
  const std::string id = me.Register(file, false);
  const auto context = me.Context();
  const auto stream = me.kernels->Execute(context.get());
  v1::ExecuteRequest request;
  *request.mutable_open() = RmseOpen(v1::DTYPE_F32, shape);
  ReferToRegion(request.mutable_open(), 0, id, 0);
  stream->Write(request);
  v1::ExecuteResponse response;
  ASSERT_TRUE(stream->Read(&response) && response.has_opened());
  EXPECT_EQ(me.List().regions(0).users(), 1u);
  ASSERT_TRUE(me.Unregister(id).ok());
  file.Unlink();
  v1::Open late = RmseOpen(v1::DTYPE_F32, shape);
  ReferToRegion(&late, 0, id, 0);
  ExpectError(me.Execute(late).status, StatusCode::NOT_FOUND, "REGION", "references[0].region.region", id);
  EXPECT_EQ(server.engine().stats().regions, 0u);
  EXPECT_GE(server.engine().stats().region_bytes, a.size());
  for (size_t at = 0; at < b.size(); at += 1'000'000) {
    request.Clear();
    request.mutable_chunk()->set_operand(1);
    request.mutable_chunk()->set_offset(at);
    request.mutable_chunk()->set_data(b.substr(at, 1'000'000));
    ASSERT_TRUE(stream->Write(request));
  }
  stream->WritesDone();
  ASSERT_TRUE(stream->Read(&response) && response.has_result());
  EXPECT_TRUE(response.result().results(0).data() == HostRmse(a, b, DType::kF32, shape));
  EXPECT_TRUE(stream->Finish().ok());
  ExpectNoRegions(server);
}

TEST_P(Regions, DrainingRefusesNewOnes) {
  SharedFile file(4096);
  const std::string id = me.Register(file);
  server.rpc().BeginDrain();
  v1::RegionInfo info;
  ExpectError(me.Register(RegionCaller::RequestFor(file), &info), StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_EQ(me.List().regions_size(), 1);
  EXPECT_TRUE(me.Unregister(id).ok());
  server.ExpectIdle();
}

TEST_P(Regions, ArraysLargerThanTheDevicePassThrough) {
  auto options = RegionOptions();
  options.engine.device_bytes = 16 << 20;
  TestServer small(device(), options);
  RegionCaller caller(small);
  const int64_t count = 5'000'000;  // 20 MB
  const std::string a = Floats(static_cast<size_t>(count), 1);
  SharedFile file(2 * a.size());
  file.Write(0, a.data(), a.size());
  const std::string id = caller.Register(file);
  v1::GaussianPdfRequest request;
  request.mutable_op()->set_stddev(1);
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {count});
  At(request.mutable_input()->mutable_region(), id, 0);
  At(request.mutable_options()->mutable_result_region(), id, a.size());
  v1::GaussianPdfResponse response;
  const auto status = caller.kernels->GaussianPdf(caller.Context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(file.Read(a.size(), a.size()) == HostGaussian(a, DType::kF32, {count}, 0, 1));
  EXPECT_EQ(small.engine().stats().jobs_windowed, 1u);
  small.ExpectIdle();
}

}  // namespace
}  // namespace tilewire::testing

// Regions of device memory over sockets and through the client library: registering, computing in place,
// errors.
#include <cstring>

#include "client/cpp/client.h"
#include "tests/integration/regions.h"
#include "tests/unit/device_exports.h"

namespace tilewire::testing {
namespace {

using client::ArraySource;
using client::DeviceRegion;
using grpc::StatusCode;

class DeviceRegions : public OnBoth {
 protected:
  static TestServer::Options Options(bool on) {
    auto options = RegionOptions();
    options.engine.regions.device = on;
    return options;
  }
  std::unique_ptr<engine::Device> Exporting() { return std::make_unique<ExportsDevice>(device(), &exports); }
  static v1::RegisterRequest RequestFor(const ExportedMemory& memory) {
    v1::RegisterRequest request;
    request.mutable_device_memory()->set_handle(memory.handle());
    request.mutable_device_memory()->set_bytes(memory.bytes());
    request.set_writable(true);
    return request;
  }
  /// Nothing is open, and the server is well.
  void TearDown() override {
    ExpectNoRegions(server);
    EXPECT_EQ(exports.open(), 0);
  }

  DeviceExports exports;
  TestServer server{Exporting(), Options(true)};
  RegionCaller me{server}, other{server, "other"};
  client::Client library = client::Client::Connect(server.address(), {.metadata = {{"who", "me"}}});
};
TILEWIRE_ON_BOTH(DeviceRegions);

TEST_P(DeviceRegions, AreListedAsTheyWereRegisteredAndClosedWhenUnregistered) {
  const ExportedMemory memory(&exports, 5000);
  v1::RegisterRequest request = RequestFor(memory);
  request.mutable_device_memory()->set_offset(512);
  request.mutable_device_memory()->set_bytes(1000);
  request.mutable_device_memory()->set_device(server.engine().facts().id);
  request.set_ttl_seconds(700);
  v1::RegionInfo info;
  const auto status = me.Register(request, &info);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(info.device_memory().SerializeAsString(), request.device_memory().SerializeAsString());
  EXPECT_FALSE(info.has_shared_memory());
  EXPECT_LE(info.expires_seconds(), 700);
  EXPECT_EQ(exports.open(), 1);
  const auto list = me.List();
  ASSERT_EQ(list.regions_size(), 1);
  EXPECT_EQ(list.regions(0).device_memory().bytes(), 1000u);
  EXPECT_EQ(list.registered_bytes(), 0u) << "none of it is the server's";
  EXPECT_EQ(other.List().regions_size(), 0);
  ExpectError(other.Unregister(info.region()), StatusCode::NOT_FOUND, "REGION", "region", info.region());
  EXPECT_TRUE(me.Unregister(info.region()).ok());
  EXPECT_EQ(exports.open(), 0) << "closed before it is told";
}

TEST_P(DeviceRegions, RefusalsNameWhatIsWrong) {
  const ExportedMemory memory(&exports, 5000);
  const auto refused = [&](const v1::RegisterRequest& request, StatusCode code, const std::string& reason,
                           const std::string& field) {
    v1::RegionInfo info;
    ExpectError(me.Register(request, &info), code, reason, field);
  };
  const auto bad = StatusCode::INVALID_ARGUMENT;
  v1::RegisterRequest request = RequestFor(memory);
  request.mutable_device_memory()->set_bytes(5001);
  refused(request, bad, "BAD_VALUE", "device_memory.bytes");
  request.mutable_device_memory()->set_handle("short");
  refused(request, bad, "BAD_VALUE", "device_memory.handle");
  request.mutable_device_memory()->set_handle(DeviceExports::None());
  refused(request, bad, "BAD_VALUE", "device_memory.handle");
  exports.Refuse(true);
  refused(RequestFor(memory), StatusCode::FAILED_PRECONDITION, "REGION_UNPINNABLE", "");
  exports.Refuse(false);
  TestServer off(Exporting(), Options(false));
  RegionCaller caller(off);
  v1::RegionInfo info;
  ExpectError(caller.Register(RequestFor(memory), &info), StatusCode::UNIMPLEMENTED, "REGIONS_OFF");
  client::Client library_off = client::Client::Connect(off.address(), {.metadata = {{"who", "me"}}});
  for (auto* const asked : {&library, &library_off}) {
    const auto described = asked->Describe();
    ASSERT_TRUE(described) << described.error().ToString();
    EXPECT_EQ(described->device_regions, asked == &library);
  }
}

TEST_P(DeviceRegions, EveryCallComputesInPlaceWithTheSameBits) {
  for (const int64_t rows : {10, 3000}) {
    SCOPED_TRACE(rows);
    const ArraySpec spec = MakeSpec(DType::kF32, std::vector<int64_t>{rows, 640}).value();  // whole 256 bytes
    const auto count = static_cast<size_t>(rows) * 640;
    const std::string a = Floats(count, 1), b = Floats(count, 2);
    const ExportedMemory memory(&exports, 3 * a.size());
    std::memcpy(memory.data(), a.data(), a.size());
    std::memcpy(memory.data() + a.size(), b.data(), b.size());
    auto region = library.RegisterDevice({.handle = memory.handle(), .bytes = memory.bytes()});
    ASSERT_TRUE(region) << region.error().ToString();
    const ArraySource in[] = {region->source(spec), region->source(spec, a.size())};
    const ArraySource sent[] = {ArraySource::FromMemory(spec, a.data()),
                                ArraySource::FromMemory(spec, b.data())};
    for (const client::CallForm form : {client::CallForm::kAuto, client::CallForm::kStream}) {
      client::CallOptions options;
      options.form = form;
      const auto expected = library.Rmse(sent[0], sent[1], {{1}});
      const auto both = library.Rmse(in[0], in[1], {{1}}, options);
      const auto mixed = library.Rmse(sent[0], in[1], {{1}}, options);
      ASSERT_TRUE(expected && both && mixed) << both.error().ToString();
      EXPECT_EQ(both->values, expected->values);
      EXPECT_EQ(mixed->values, expected->values);
      EXPECT_EQ(both->reply.timing.bytes_in + both->reply.timing.region_bytes_in, 0u);
    }
    const auto into = library.ExecuteInto(client::TransposeOp{}, {in, 1}, region->place(2 * a.size()));
    ASSERT_TRUE(into) << into.error().ToString();
    const std::string turned = HostTranspose(a, DType::kF32, {rows, 640});
    EXPECT_EQ(std::memcmp(memory.data() + 2 * a.size(), turned.data(), turned.size()), 0);
    EXPECT_TRUE(memory.RimIntact());
    EXPECT_EQ(into->timing.bytes_out + into->timing.region_bytes_out, 0u);
    const auto over = library.ExecuteInto(client::TransposeOp{}, {in, 1}, region->place(256));
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().detail()->field, "options.result_region.offset");
    const auto odd = library.ExecuteInto(client::TransposeOp{}, {in, 1}, region->place(2 * a.size() - 4));
    EXPECT_EQ(odd.error().reason(), "BAD_VALUE");
    DeviceRegion moved = std::move(*region);
    EXPECT_FALSE(*region);
    EXPECT_TRUE(moved);
    EXPECT_TRUE(moved.Unregister().ok());
    EXPECT_EQ(exports.open(), 0) << "the memory may be freed";
    EXPECT_TRUE(moved.Unregister().ok()) << "done";
  }
}

}  // namespace
}  // namespace tilewire::testing

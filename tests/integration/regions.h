// What the tests of regions share.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/arrays.h"
#include "tests/unit/shared_file.h"
#include "tilewire/v1/regions.grpc.pb.h"

namespace tilewire::testing {

/// A caller with a name, a connection of its own, and memory on the server's host.
class RegionCaller : public ArrayCaller {
 public:
  explicit RegionCaller(const TestServer& server, const std::string& who = "me")
      : ArrayCaller(server, who), regions(v1::Regions::NewStub(channel)) {}

  grpc::Status Register(const v1::RegisterRequest& request, v1::RegionInfo* info) {
    return regions->Register(Context().get(), request, info);
  }
  /// All of `file`; the id, or "" where it failed.
  std::string Register(const SharedFile& file, bool writable = true) {
    v1::RegionInfo info;
    const auto status = Register(RequestFor(file, writable), &info);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return info.region();
  }
  grpc::Status Unregister(const std::string& id) {
    v1::UnregisterRequest request;
    request.set_region(id);
    v1::UnregisterResponse response;
    return regions->Unregister(Context().get(), request, &response);
  }
  v1::ListRegionsResponse List(uint32_t size = 0, const std::string& page = "") {
    v1::ListRegionsRequest request;
    request.set_page_size(size);
    request.set_page(page);
    v1::ListRegionsResponse response;
    EXPECT_TRUE(regions->List(Context().get(), request, &response).ok());
    return response;
  }
  static v1::RegisterRequest RequestFor(const SharedFile& file, bool writable = true) {
    v1::RegisterRequest request;
    request.mutable_shared_memory()->set_name(file.name());
    request.mutable_shared_memory()->set_bytes(file.bytes());
    request.set_writable(writable);
    return request;
  }

  const std::unique_ptr<v1::Regions::Stub> regions;
};

inline TestServer::Options RegionOptions() {
  auto options = ArrayOptions();
  options.engine.regions = {.prefix = kRegionPrefix, .bytes = 256 << 20, .bytes_per_identity = 128 << 20};
  return options;
}

inline void At(v1::RegionPlace* place, const std::string& id, uint64_t offset) {
  place->set_region(id);
  place->set_offset(offset);
}

inline void ReferToRegion(v1::Open* open, uint32_t operand, const std::string& id, uint64_t offset) {
  auto* reference = open->add_references();
  reference->set_operand(operand);
  At(reference->mutable_region(), id, offset);
}

/// No region is left, and nothing is leased.
inline void ExpectNoRegions(TestServer& server) {
  EXPECT_TRUE(Eventually([&] {
    const auto stats = server.engine().stats();
    return stats.regions == 0 && stats.region_bytes == 0;
  }));
  ExpectUnharmed(server);
}

}  // namespace tilewire::testing

// What the engine's tests of regions share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/device_exports.h"
#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/shared_file.h"

namespace tilewire::engine::testing {

using tilewire::testing::kRegionPrefix;
using tilewire::testing::SharedFile;

/// Limits under which regions are on.
inline RegionLimits RegionsOn(int64_t bytes = 64 << 20) {
  return {.prefix = kRegionPrefix, .bytes = bytes};
}

inline Result<RegionFacts> Register(RegionStore& store, const RegionRequest& request,
                                    const std::string& identity = "anonymous") {
  auto registered = std::make_shared<std::promise<Result<RegionFacts>>>();
  store.Register(identity, request, [registered](auto facts) { registered->set_value(std::move(facts)); });
  return registered->get_future().get();
}

/// All of `file` from `offset` on.
inline RegionRequest All(const SharedFile& file, uint64_t offset = 0, bool writable = true) {
  return {.name = file.name(), .offset = offset, .bytes = file.bytes() - offset, .writable = writable};
}

/// Limits under which regions of device memory are on, or off, beside those of shared memory.
inline RegionLimits DeviceOn(bool device = true) {
  RegionLimits limits = RegionsOn();
  limits.device = device;
  return limits;
}

/// All of an allocation.
inline RegionRequest All(const tilewire::testing::ExportedMemory& memory, bool writable = true) {
  return {.bytes = memory.bytes(), .writable = writable, .handle = memory.handle()};
}

/// A part of what `file` was registered as.
inline RegionPart Part(Engine& engine, const std::string& id, uint64_t offset) {
  auto use = engine.regions().Use(id, "anonymous", "region");
  EXPECT_TRUE(use) << use.error().ToString();
  return {.region = use ? *std::move(use) : nullptr, .offset = offset, .field = "place"};
}

/// Shared memory with a problem's operands one after the other, at odd places, and room for the result behind
/// them.
class Placed {
 public:
  Placed(Engine& engine, const Problem& problem)
      : file_(kGap * 4 + problem.operands.size() * problem.operands[0].size() + problem.expected.size()) {
    size_t at = kGap;
    for (const Bytes& operand : problem.operands) {
      places_.push_back(at);
      file_.Write(at, operand.data(), operand.size());
      at += operand.size() + kGap;
    }
    places_.push_back(at);
    const auto region = Register(engine.regions(), All(file_));
    EXPECT_TRUE(region) << region.error().ToString();
    if (region) id_ = region->id;
  }

  SharedFile& file() { return file_; }
  const std::string& id() const { return id_; }
  size_t result_at() const { return places_.back(); }
  /// `mask`: which operands to take from here.
  JobOptions Options(Engine& engine, unsigned mask, bool result_too) const {
    JobOptions options;
    for (size_t i = 0; i + 1 < places_.size(); ++i)
      options.regions.push_back((mask >> i & 1) != 0 ? Part(engine, id_, places_[i]) : RegionPart());
    if (result_too) options.result_region = Part(engine, id_, places_.back());
    return options;
  }

 private:
  static constexpr size_t kGap = 13;
  SharedFile file_;
  std::vector<size_t> places_;
  std::string id_;
};

inline bool NoRegionsLeft(const Engine& engine) {
  return Becomes([&engine] {
    const EngineStats stats = engine.stats();
    return stats.regions == 0 && stats.region_bytes == 0;
  });
}

}  // namespace tilewire::engine::testing

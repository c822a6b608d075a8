// Operands that are resident arrays or lie in regions, and results that go into regions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/job/options.h"
#include "server/engine/stores/array_store.h"
#include "server/engine/stores/region_store.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::rpc {

/// The caller's arrays and regions. One that is named twice is used once. Used by one thread at a time.
class Finder {
 public:
  Finder(engine::ArrayStore* arrays, engine::RegionStore* regions, std::string identity)
      : array_store_(arrays), region_store_(regions), identity_(std::move(identity)) {}
  /// Fails as ArrayStore::Use does; `field` is to blame.
  Result<engine::ArrayUse> Array(const std::string& id, const std::string& field);
  /// Fails as RegionStore::Use does; `field` is the place's. Whether the region has the bytes is not known
  /// yet.
  Result<engine::RegionPart> Place(const v1::RegionPlace& place, const std::string& field);

 private:
  engine::ArrayStore* const array_store_;
  engine::RegionStore* const region_store_;
  const std::string identity_;
  std::map<std::string, engine::ArrayUse> arrays_;
  std::map<std::string, engine::RegionUse> regions_;
};

/// What the operands of a request are that are not sent, one place an operand: null where bytes are to come.
struct References {
  std::vector<engine::ArrayUse> arrays;
  std::vector<engine::RegionPart> regions;

  bool sent(size_t operand) const { return !arrays[operand] && !regions[operand]; }
  /// Whether any operand is.
  bool any_sent() const;
};

/// What an Open of an operation with so many operands refers to. INVALID_ARGUMENT for an operand that does
/// not exist, is named twice, or neither or both an array and in a region, and for an array that is to be
/// put.
Result<References> ReferencesOf(const v1::Open& open, size_t operands, Finder* finder);

/// The rest of `options`: operands that are referred to, and where the result goes. INVALID_ARGUMENT for a
/// result that is to be stored and to go into a region.
Status Complete(const v1::Options& asked, References references, Finder* finder, engine::JobOptions* options);

}  // namespace tilewire::rpc

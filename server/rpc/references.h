// Operands that are resident arrays.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/engine.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::rpc {

/// The caller's arrays. One that is named twice is used once. Used by one thread at a time.
class ArrayFinder {
 public:
  ArrayFinder(engine::Engine* engine, std::string identity)
      : engine_(engine), identity_(std::move(identity)) {}
  /// Fails as ArrayStore::Use does; `field` is to blame.
  Result<engine::ArrayUse> Find(const std::string& id, const std::string& field);

 private:
  engine::Engine* const engine_;
  const std::string identity_;
  std::map<std::string, engine::ArrayUse> found_;
};

/// The arrays that an Open refers to, one place an operand of its operation, null where bytes are to come.
/// INVALID_ARGUMENT for an operand that does not exist, is named twice, or is to be put.
Result<std::vector<engine::ArrayUse>> ResidentsOf(const v1::Open& open, ArrayFinder* arrays);

}  // namespace tilewire::rpc

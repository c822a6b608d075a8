// What is to be known of an operation: whoever has its descriptor can check a request, make its problem, run
// it and tell of it, without its name. Every operation has one, kernels/X/descriptor.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/operation/attributes.h"
#include "kernels/operation/problem.h"

namespace tilewire {

/// In the order of AttributeValue.
enum class AttributeKind : uint8_t { kInteger, kReal, kIntegers };

struct AttributeInfo {
  std::string_view name;  ///< "axes", as on the wire
  AttributeKind kind;
  double fallback = 0;        ///< of a number that was not given; a list is then empty
  std::string_view allowed;   ///< for people
  bool picks_kernels = true;  ///< whether which kernels run depends on it, so that texts about them tell it
};

/// A problem that stands for many in the catalogue of kernels.
struct Example {
  std::vector<ArraySpec> operands;
  Attributes attributes;
};

/// Immutable, lives for ever; thread-safe.
struct Descriptor {
  std::string_view name;             ///< "rmse"
  std::string_view numeric_version;  ///< "rmse.1": the contract that results keep to the bit; README.md
  std::span<const std::string_view> operands;  ///< their names, "a" and "b"; at most kMaxOperands
  bool (*accepts)(DType dtype);                ///< whether operands may be of it
  std::span<const AttributeInfo> attributes;
  /// The problem of operands and attributes whose number and kinds are right, each attribute given. Makes
  /// every other check: INVALID_ARGUMENT naming field, value and what was allowed.
  Result<std::unique_ptr<Problem>> (*make)(std::span<const ArraySpec> operands, const Attributes& attributes);
  /// For the catalogue: every dtype, then the geometries that need kernels of their own.
  std::vector<Example> (*examples)();

  /// What was given and what the rest falls back to, in the order of `attributes`. INVALID_ARGUMENT for one
  /// that the operation does not have or of another kind.
  Result<Attributes> Complete(const Attributes& given) const;
  /// The problem of a request. INVALID_ARGUMENT naming field, value and what was allowed: for a wrong number
  /// of operands, attributes as Complete(), and as `make` says.
  Result<std::unique_ptr<Problem>> Make(std::span<const ArraySpec> specs, const Attributes& given) const;
  /// "rmse f32 (1024, 1024, 16) axes 0 1": which kernels are talked of, for people.
  std::string Text(std::span<const ArraySpec> specs, const Attributes& given) const;
};

/// INVALID_ARGUMENT where an operand's dtype or shape is not that of the first, for a `make` that wants them
/// alike.
Status CheckAlike(const Descriptor& descriptor, std::span<const ArraySpec> operands);

}  // namespace tilewire

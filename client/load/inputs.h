// The data of the calls, and the answers that are right.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/load/scenario.h"

namespace tilewire::load {

/// Operands of one call and their results by the host kernels: the bits that the numeric contract promises.
struct Input {
  std::vector<std::vector<uint8_t>> operands;
  std::vector<std::vector<uint8_t>> expected;
};

/// Fills an operand of `spec` with values that differ everywhere: finite floats in (−4, 4), integers of all
/// bits, booleans.
void FillRandom(const ArraySpec& spec, uint64_t seed, std::vector<uint8_t>* bytes);

/// The results of an operation on these operands, on this machine's CPU, one thread.
std::vector<std::vector<uint8_t>> ExpectedResults(const OperationSpec& spec,
                                                  const std::vector<std::vector<uint8_t>>& operands);

/// All inputs of a scenario. Immutable once made, so thread-safe.
class Inputs {
 public:
  /// Makes them on all cores. RESOURCE_EXHAUSTED `MEMORY` where they would take over half of the memory that
  /// is free.
  static Result<Inputs> Make(std::span<const OperationSpec> operations, uint32_t inputs, uint64_t seed);

  /// Of each operation.
  uint32_t count() const { return inputs_.empty() ? 0 : static_cast<uint32_t>(inputs_.front().size()); }
  const Input& at(uint32_t operation, uint32_t input) const { return inputs_[operation][input]; }

 private:
  std::vector<std::vector<Input>> inputs_;
};

}  // namespace tilewire::load

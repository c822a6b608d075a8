// What the job pipeline runs: a problem of some operation, or the passing on of an array.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/operation/problem.h"

namespace tilewire::engine {

/// One operation on arrays of known shape: sizes, ranges, and the work of a range.
using Operation = ::tilewire::Problem;
/// Operations are immutable, so that those who ask for the same work over and over share one.
using OperationPtr = std::shared_ptr<const Operation>;

/// The operand as it is, as result: what puts an array and what gets one. `name` and `version` are told as
/// its own and live for ever.
std::unique_ptr<Operation> MakePass(const ArraySpec& spec, std::string_view name,
                                    std::string_view version = "");
/// The same with further results that are there already: nothing but the first, the operand, is touched.
std::unique_ptr<Operation> MakePass(std::vector<ArraySpec> results, std::string_view name,
                                    std::string_view version);

}  // namespace tilewire::engine

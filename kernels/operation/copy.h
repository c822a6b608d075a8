// The operation that moves bytes and computes nothing: what the memory of a device can do at most.
#pragma once

#include <memory>

#include "kernels/operation/problem.h"

namespace tilewire {

/// No request can ask for it, so it is in no table.
extern const Descriptor kCopyDescriptor;

/// One range: the operand's bytes as the result's, in memory of their own.
std::unique_ptr<Problem> MakeCopy(const ArraySpec& spec);

}  // namespace tilewire

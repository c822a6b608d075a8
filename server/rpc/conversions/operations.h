// The server's table of operations: everything that is to know all of them is given this.
#pragma once

#include <span>

#include "kernels/operation/descriptor.h"

namespace tilewire::rpc {

/// In the order in which Describe tells their numeric versions.
std::span<const Descriptor* const> Operations();

}  // namespace tilewire::rpc

#include "server/rpc/conversions/operations.h"

#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"

namespace tilewire::rpc {

std::span<const Descriptor* const> Operations() {
  static constexpr const Descriptor* kOperations[] = {&rmse::kDescriptor, &transpose::kDescriptor,
                                                      &gaussian::kDescriptor};
  return kOperations;
}

}  // namespace tilewire::rpc

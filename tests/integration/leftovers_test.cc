// What one caller's jobs left in memory, on the CPU device; tests/gpu has the same for the GPU.
#include "tests/integration/leftovers.h"

namespace tilewire::testing {
namespace {

class LeftoversTest : public OnBoth {};
TILEWIRE_ON_BOTH(LeftoversTest);

TEST_P(LeftoversTest, OfOneCallerReachNobodyElse) {
  Leftovers(device()).ExpectNone();
}

}  // namespace
}  // namespace tilewire::testing

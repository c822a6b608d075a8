// A random sample of N-d permutations, the same for the same seed: what a user meets who did not ask us
// first.
#include "kernels/bench/move_work.h"
#include "kernels/transpose/random_cases.h"

namespace tilewire::bench {

void AddPermuteCases(const CaseOptions& options, std::vector<Case>* cases) {
  for (const auto& drawn : transpose::PermutationCases(options.seed, options.permutations)) {
    Case one = MoveCase("permute", drawn.ToString(), drawn.dtype, drawn.dims, drawn.axes,
                        OurMove(drawn.dtype, drawn.dims, drawn.axes));
    one.sampled = true;
    cases->push_back(std::move(one));
  }
}

}  // namespace tilewire::bench

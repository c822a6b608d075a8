// Every group there is, in report order.
#include "kernels/bench/bench.h"

namespace tilewire::bench {

std::vector<Case> AllCases(const CaseOptions& options) {
  std::vector<Case> cases;
#if TILEWIRE_HAVE_CUDA
  AddCopyCases(options, &cases);
  AddRmseCases(options, &cases);
  AddBatchedCases(options, &cases);
  AddLayoutCases(options, &cases);
  AddCompareCases(options, &cases);
  AddTransposeCases(options, &cases);
  AddPermuteCases(options, &cases);
  AddGaussianCases(options, &cases);
  AddLadderCases(options, &cases);
#endif
  AddHostCases(options, &cases);
  return cases;
}

}  // namespace tilewire::bench

// What the GPU tests of regions compute: every operation, small and over several blocks.
#pragma once

#include <vector>

#include "tests/unit/engine_regions_testing.h"

namespace tilewire::engine::testing {

inline std::vector<Problem> RegionProblems() {
  std::vector<Problem> problems;
  problems.push_back(RmseProblem(DType::kF32, {1000}, {}, 1));
  problems.push_back(RmseProblem(DType::kF32, {300, 1000}, {0}, 3));
  problems.push_back(RmseProblem(DType::kF32, {3'000'000}, {}, 4));
  problems.push_back(TransposeProblem(DType::kF32, {1310, 549}, {1, 0}, 8));
  problems.push_back(GaussianProblem(DType::kF32, {900'001}, 0.25, 1.5, 9));
  return problems;
}

}  // namespace tilewire::engine::testing

// The tree of rmse.1 as its contract reads, written anew: what the benchmarks hold the host's kernels
// against.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilewire::bench {

/// The sum of a segment of `n` pairs. `add(i, acc)` is an accumulator after pair i.
template <typename Add>
double TreeSum(int64_t n, const Add& add) {
  std::vector<double> sums;
  for (int64_t begin = 0; begin < n; begin += 4096) {
    double acc[256] = {};
    for (int64_t i = begin; i < std::min(begin + 4096, n); ++i) acc[i % 256] = add(i, acc[i % 256]);
    for (int s = 128; s >= 1; s /= 2)
      for (int i = 0; i < s; ++i) acc[i] += acc[i + s];
    sums.push_back(acc[0]);
  }
  while (sums.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(sums[i] + sums[i + 1]);
    if (sums.size() % 2 != 0) next.push_back(sums.back());
    sums.swap(next);
  }
  return sums[0];
}

}  // namespace tilewire::bench

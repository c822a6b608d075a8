// What the host cases share: memory, data, threads, names of limits.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/array/shape.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/host_team.h"

namespace tilewire::bench {

/// Bytes of one large operand: two of them pass the last cache of any machine that this is for, which is also
/// why host works need no flushing.
inline constexpr int64_t kHostOperandBytes = int64_t{512} << 20;

/// Names of the limits that AddHostLimitCases defines for n threads.
std::string HostReadLimit(int threads);
std::string HostCopyLimit(int threads);

/// Sets what belongs to every host case but its work.
Case HostCase(std::string group, std::string name, int threads, const ArraySpec& spec);

/// Fills `buffer` with elements of `dtype` that depend on `seed` and the position alone: integers of every
/// value, floats in [1, 2). Runs on the team.
void FillHost(HostTeam& team, DType dtype, uint64_t seed, const HostBuffer& buffer);

/// A 64-bit hash of `x`; its low bits are as good as its high ones.
uint64_t Mix(uint64_t x);

// One file each.
void AddHostLimitCases(int threads, std::vector<Case>* cases);      // host_limits.cc
void AddHostRmseCases(int threads, std::vector<Case>* cases);       // host_rmse.cc
void AddHostCompareCases(int threads, std::vector<Case>* cases);    // host_compare.cc
void AddHostTransposeCases(int threads, std::vector<Case>* cases);  // host_move.cc
void AddHostGaussianCases(int threads, std::vector<Case>* cases);   // host_gaussian.cc

}  // namespace tilewire::bench

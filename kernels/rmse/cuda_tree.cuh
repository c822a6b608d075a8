// The tree of rmse.1 on a GPU: in registers, over lanes, over threads of a block. Each level adds positions p
// and p + s; who holds which operand is free.
#pragma once

namespace tilewire::rmse::cuda {

/// v[0] + v[n / 2], v[1] + v[n / 2 + 1], ..., and so on until one is left, in v[0].
template <int n, int kSize>
__device__ void Fold(double (&v)[kSize]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) v[i] = __dadd_rn(v[i], v[i + n / 2]);
    Fold<n / 2>(v);
  }
}

/// Likewise for columns, v[i][c] of each.
template <int n, int kSize, int kColumns>
__device__ void Fold(double (&v)[kSize][kColumns]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) v[i][c] = __dadd_rn(v[i][c], v[i + n / 2][c]);
    Fold<n / 2>(v);
  }
}

/// v[0] + v[1], v[2] + v[3], ..., and so on until one is left, in v[0].
template <int n, int kSize>
__device__ void FoldPairs(double (&v)[kSize]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) v[i] = __dadd_rn(v[2 * i], v[2 * i + 1]);
    FoldPairs<n / 2>(v);
  }
}

/// The number of the chain or group that is visited `index`-th of 2^n, where `shift` is __clz(2^n): in
/// bit-reversed order equal subtrees follow each other, and Carry needs to hold few sums.
__device__ inline int Reversed(int index, int shift) {
  return static_cast<int>(__brev(static_cast<unsigned>(index)) >> 1 >> shift);
}
__device__ constexpr int ReversedOf(int k, int n) {
  int r = 0;
  for (; n > 1; n /= 2, k /= 2) r = r * 2 + k % 2;
  return r;
}

/// The tree over what is visited in bit-reversed order, after number `index` of it: equal subtrees meet like
/// the carries of a binary counter, and `sum` becomes that of the largest subtree that ends here.
template <int kLevels, int kV>
__device__ void Carry(int index, double (&sum)[kV], double (&held)[kLevels + 1][kV]) {
  bool carry = true;
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
    if (!carry) continue;
    if ((index >> level & 1) == 0) {
#pragma unroll
      for (int v = 0; v < kV; ++v) held[level][v] = sum[v];
      carry = false;
    } else {
#pragma unroll
      for (int v = 0; v < kV; ++v) sum[v] = __dadd_rn(held[level][v], sum[v]);
    }
  }
}

/// Likewise where the order is unrolled and the sums so far stand in `acc`: after number k.
template <int kGroup, int kV>
__device__ void CarryUnrolled(double (&acc)[kGroup][kV], int k) {
#pragma unroll
  for (int s = 1; s < kGroup; s *= 2)
    if ((k + 1) % (2 * s) == 0) {
#pragma unroll
      for (int v = 0; v < kV; ++v)
        acc[k + 1 - 2 * s][v] = __dadd_rn(acc[k + 1 - 2 * s][v], acc[k + 1 - s][v]);
    }
}

/// The tree over a warp in which lane l holds positions l·kValues + v (modulo what came before). A lane keeps
/// half of its values a level, as long as it has several; the levels within a word come last, over the lanes
/// that then hold them. Every lane returns the sum.
template <int kValues>
__device__ double WarpTree(double (&acc)[kValues], int lane) {
  int held = kValues;
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) {
    if (held > 1) {
      held /= 2;
      const bool upper = (lane & lanes) != 0;
#pragma unroll
      for (int v = 0; v < kValues / 2; ++v) {
        if (v < held) {
          const double give = upper ? acc[v] : acc[v + held];
          const double keep = upper ? acc[v + held] : acc[v];
          acc[v] = __dadd_rn(keep, __shfl_xor_sync(0xffffffffu, give, lanes));
        }
      }
    } else {
      acc[0] = __dadd_rn(acc[0], __shfl_xor_sync(0xffffffffu, acc[0], lanes));
    }
  }
#pragma unroll
  for (int lanes = 16, v = kValues; v > 1; lanes /= 2, v /= 2)
    acc[0] = __dadd_rn(acc[0], __shfl_xor_sync(0xffffffffu, acc[0], lanes));
  return acc[0];
}

/// The sum of a warp's integers, whose order does not matter.
template <typename Sum>
__device__ double WarpExact(Sum part) {
  unsigned long long sum = part;
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  return __ull2double_rn(sum);
}

/// The tree over kPhases sums of one segment, in `sums`, by a warp. Every lane returns it.
template <int kPhases>
__device__ double WarpPhases(const double* sums, int lane) {
  double part[kPhases / 32];
#pragma unroll
  for (int w = 0; w < kPhases / 32; ++w) part[w] = sums[w * 32 + lane];
  Fold<kPhases / 32>(part);
  double one[1] = {part[0]};
  return WarpTree(one, lane);
}

/// One level of the tree over lanes l and l ^ `lanes`. As long as a lane holds sums of several segments it
/// keeps one half and gives the other away, so nothing is computed twice; once it holds one, both lanes
/// compute the same sum.
template <int kHeld, int kBatch, int kValues, typename Sum>
__device__ void Exchange(Sum (&sum)[kBatch][kValues], int lane, int lanes) {
  if constexpr (kHeld > 1) {
    constexpr int kHalf = kHeld / 2;
    const bool upper = (lane & lanes) != 0;
#pragma unroll
    for (int u = 0; u < kHalf; ++u) {
#pragma unroll
      for (int v = 0; v < kValues; ++v) {
        const Sum give = upper ? sum[u][v] : sum[u + kHalf][v];
        const Sum keep = upper ? sum[u + kHalf][v] : sum[u][v];
        sum[u][v] = keep + __shfl_xor_sync(0xffffffffu, give, lanes);
      }
    }
  } else {
#pragma unroll
    for (int v = 0; v < kValues; ++v) sum[0][v] = sum[0][v] + __shfl_xor_sync(0xffffffffu, sum[0][v], lanes);
  }
}

template <int kLanes, int kHeld, int kBatch, int kValues, typename Sum>
__device__ void ExchangeAll(Sum (&sum)[kBatch][kValues], int lane) {
  if constexpr (kLanes > 1) {
    Exchange<kHeld>(sum, lane, kLanes / 2);
    ExchangeAll<kLanes / 2, (kHeld > 1 ? kHeld / 2 : 1)>(sum, lane);
  }
}

/// The tree over a block's phases, to phase 0: at each level the upper half of those left puts its sums down
/// and the lower half adds them. A level's places are its own, so one barrier suffices. `pitch`: places of a
/// phase, at least kV of each lane.
template <int kV>
__device__ void AddPhases(int phases, int lanes, int pitch, int phase, int lane, double (&sum)[kV],
                          double* shared) {
  double* mine = shared + phase * pitch + lane;
  for (int s = phases / 2; s >= 1; s /= 2) {
    if (phase >= s && phase < 2 * s) {
#pragma unroll
      for (int v = 0; v < kV; ++v) mine[v * lanes] = sum[v];
    }
    __syncthreads();
    if (phase < s) {
#pragma unroll
      for (int v = 0; v < kV; ++v) sum[v] = __dadd_rn(sum[v], mine[s * pitch + v * lanes]);
    }
  }
}

}  // namespace tilewire::rmse::cuda

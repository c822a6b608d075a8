#include "kernels/bench/host_probe.h"

namespace tilewire::bench {
namespace {

constexpr int64_t kWords = 64;  // of each operand in a step: 512 bytes

// Separate sums a word of the step, so that the additions wait for nothing.
template <bool kPrefetch>
__attribute__((always_inline)) inline uint64_t Read(const uint64_t* __restrict a,
                                                    const uint64_t* __restrict b, int64_t words,
                                                    int64_t ahead) {
  uint64_t sums[kWords / 2] = {};
  for (int64_t at = 0; at < words; at += kWords) {
    if constexpr (kPrefetch) {
      for (int64_t line = 0; line < kWords; line += 8) {
        __builtin_prefetch(a + at + ahead + line);
        __builtin_prefetch(b + at + ahead + line);
      }
    }
    for (int64_t i = 0; i < kWords / 2; ++i) sums[i] += a[at + i] ^ b[at + i];
    for (int64_t i = 0; i < kWords / 2; ++i) sums[i] += a[at + kWords / 2 + i] ^ b[at + kWords / 2 + i];
  }
  uint64_t sum = 0;
  for (const uint64_t one : sums) sum += one;
  return sum;
}

#ifdef __x86_64__
#define TILEWIRE_BENCH_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TILEWIRE_BENCH_WIDEST
#endif

TILEWIRE_BENCH_WIDEST uint64_t ReadPlain(const uint64_t* a, const uint64_t* b, int64_t words) {
  return Read<false>(a, b, words, 0);
}
TILEWIRE_BENCH_WIDEST uint64_t ReadAhead(const uint64_t* a, const uint64_t* b, int64_t words, int64_t ahead) {
  return Read<true>(a, b, words, ahead);
}

}  // namespace

uint64_t ReadBoth(const void* a, const void* b, int64_t bytes, int64_t ahead) {
  const auto* words_a = static_cast<const uint64_t*>(a);
  const auto* words_b = static_cast<const uint64_t*>(b);
  return ahead > 0 ? ReadAhead(words_a, words_b, bytes / 8, ahead / 8)
                   : ReadPlain(words_a, words_b, bytes / 8);
}

}  // namespace tilewire::bench

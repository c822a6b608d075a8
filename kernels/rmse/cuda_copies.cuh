// Copies into shared memory that no thread waits for before it asks for them.
#pragma once

#include "kernels/rmse/cuda_element.cuh"

namespace tilewire::rmse::cuda {

/// Starts to copy the kBytes at `from`. No lane waits.
template <int kBytes>
__device__ void CopyPiece(char* to, const char* from) {
#if __CUDA_ARCH__ >= 800
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(kBytes) : "memory");
  }
#else
  __builtin_memcpy(__builtin_assume_aligned(to, kBytes), __builtin_assume_aligned(from, kBytes), kBytes);
#endif
}

/// Likewise, or clears `to` where not `there`; `from` is then not read.
template <int kBytes>
__device__ void CopyPiece(char* to, const char* from, bool there) {
#if __CUDA_ARCH__ >= 800
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(place), "l"(from), "r"(bytes),
                 "n"(kBytes)
                 : "memory");
  }
#else
  if (there) {
    CopyPiece<kBytes>(to, from);
  } else {
    __builtin_memset(__builtin_assume_aligned(to, kBytes), 0, kBytes);
  }
#endif
}

/// All copies since the last call are a group.
__device__ inline void EndCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Until all of the thread's groups but the last `kLeft` are there.
template <int kLeft>
__device__ void WaitForCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

/// Until all that the thread has started to copy is there, in groups or not.
__device__ inline void WaitForAllCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// The threads that copy together, and the one that asks.
struct Team {
  int thread, threads;
};

/// Where a thread's words go in shared memory, one after the other: side by side as they come, ...
struct Packed {
  int place, step;
  __device__ explicit Packed(const Team& team) : place(team.thread), step(team.threads) {}
  __device__ int Take() {
    const int here = place;
    place += step;
    return here;
  }
};

/// ... or every `words` of them `pitch` places after the ones before.
struct Pitched {
  int words, pitch, down, along, row, word;
  __device__ Pitched(const Team& team, int row_words, int row_pitch)
      : words(row_words),
        pitch(row_pitch),
        down(team.threads / row_words),
        along(team.threads - down * row_words),
        row(team.thread / row_words),
        word(team.thread - row * row_words) {}
  __device__ int Take() {
    const int here = row * pitch + word;
    row += down;
    word += along;
    if (word >= words) word -= words, ++row;
    return here;
  }
};

/// The words of one operand that are to be copied: those from `from` on, a multiple of 16. What lies outside
/// [begin, end) is not touched and becomes 0.
struct WordRun {
  const char* from;
  int words;
  const char *begin, *end;
  __device__ bool inside() const { return from >= begin && from + words * 16 <= end; }
};

/// Starts to copy one operand's words.
template <typename T, typename Places>
__device__ void CopyWords(uint4* to, const WordRun& run, const Team& team, Places places) {
  if (run.inside()) {
#pragma unroll 4
    for (int w = team.thread; w < run.words; w += team.threads)
      CopyPiece<16>(reinterpret_cast<char*>(to + places.Take()), run.from + w * 16);
    return;
  }
  for (int w = team.thread; w < run.words; w += team.threads)
    to[places.Take()] = LoadWithin<T>(run.from + w * 16, run.begin, run.end);
}

/// Likewise both operands' in turns, which are as many and where one lies inside its array the other does.
template <typename T, typename Places>
__device__ void CopyWords(uint4* x, uint4* y, const WordRun& a, const WordRun& b, const Team& team,
                          Places places) {
  if (a.inside()) {
#pragma unroll 4
    for (int w = team.thread; w < a.words; w += team.threads) {
      const int place = places.Take();
      CopyPiece<16>(reinterpret_cast<char*>(x + place), a.from + w * 16);
      CopyPiece<16>(reinterpret_cast<char*>(y + place), b.from + w * 16);
    }
    return;
  }
  for (int w = team.thread; w < a.words; w += team.threads) {
    const int place = places.Take();
    x[place] = LoadWithin<T>(a.from + w * 16, a.begin, a.end);
    y[place] = LoadWithin<T>(b.from + w * 16, b.begin, b.end);
  }
}

}  // namespace tilewire::rmse::cuda

// Copies into shared memory that no thread waits for before it asks for them.
#pragma once

#include "kernels/rmse/cuda_element.cuh"

namespace tilewire::rmse::cuda {

/// A place in shared memory as the copies name it: arithmetic on it takes 32 bits.
__device__ inline unsigned SharedPlace(const void* to) {
  return static_cast<unsigned>(__cvta_generic_to_shared(to));
}

/// Starts to copy the 16 bytes at `from`. No lane waits.
__device__ inline void CopyWord(unsigned to, const char* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
  *static_cast<uint4*>(__cvta_shared_to_generic(to)) = *reinterpret_cast<const uint4*>(from);
#endif
}

/// Starts to copy the kBytes at `from`, or to clear `to` where not `there`. No lane waits.
template <int kBytes>
__device__ void CopyPiece(char* to, const char* from, bool there) {
#if __CUDA_ARCH__ >= 800
  const unsigned place = SharedPlace(to);
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
    __builtin_memcpy(__builtin_assume_aligned(to, kBytes), __builtin_assume_aligned(from, kBytes), kBytes);
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

/// Where word w, one of a thread's, which come in ascending order, goes in shared memory: to place w, ...
struct Packed {
  __device__ static int Take(int w) { return w; }
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
  __device__ int Take(int /*w*/) {
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
    const unsigned place = SharedPlace(to);
#pragma unroll 4
    for (int w = team.thread; w < run.words; w += team.threads)
      CopyWord(place + static_cast<unsigned>(places.Take(w)) * 16, run.from + w * 16);
    return;
  }
  for (int w = team.thread; w < run.words; w += team.threads)
    to[places.Take(w)] = LoadWithin<T>(run.from + w * 16, run.begin, run.end);
}

/// Likewise both operands' in turns, which are as many and where one lies inside its array the other does.
template <typename T, typename Places>
__device__ void CopyWords(uint4* x, uint4* y, const WordRun& a, const WordRun& b, const Team& team,
                          Places places) {
  if (a.inside()) {
    const unsigned to_x = SharedPlace(x), to_y = SharedPlace(y);
#pragma unroll 4
    for (int w = team.thread; w < a.words; w += team.threads) {
      const auto place = static_cast<unsigned>(places.Take(w)) * 16;
      CopyWord(to_x + place, a.from + w * 16);
      CopyWord(to_y + place, b.from + w * 16);
    }
    return;
  }
  for (int w = team.thread; w < a.words; w += team.threads) {
    const int place = places.Take(w);
    x[place] = LoadWithin<T>(a.from + w * 16, a.begin, a.end);
    y[place] = LoadWithin<T>(b.from + w * 16, b.begin, b.end);
  }
}

}  // namespace tilewire::rmse::cuda

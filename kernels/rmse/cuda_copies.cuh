// Copies into shared memory that no thread waits for before it asks for them.
#pragma once

namespace tilewire::rmse::cuda {

/// Starts to copy the kBytes at `from`, or to clear `to` where not `there`. No lane waits.
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

}  // namespace tilewire::rmse::cuda

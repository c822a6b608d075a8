#include <algorithm>
#include <cstdint>

#include "kernels/array/copy_cuda.h"

namespace tilewire::gpu {
namespace {

using Word = ulonglong2;
constexpr unsigned kWord = sizeof(Word);
constexpr unsigned kThreads = 256, kWarp = 32;
/// So many have 256 KiB on their way, more than a bus holds, and leave room beside them.
constexpr size_t kMostBlocks = 64;

/// A copy, cut where words of the target begin: `head` bytes, `words` words, fewer than a word of bytes.
struct Cut {
  std::byte* to;
  const std::byte* from;
  size_t bytes, head, words;
};

/// The bytes before and behind the words, by the first warp's threads.
__device__ void CopyEdges(const Cut& cut) {
  if (blockIdx.x > 0 || threadIdx.x >= 2 * kWord) return;
  const size_t byte = threadIdx.x % kWord;
  const bool behind = threadIdx.x >= kWord;
  const size_t at = behind ? cut.head + cut.words * kWord + byte : byte;
  if (at < (behind ? cut.bytes : cut.head)) cut.to[at] = cut.from[at];
}

/// Source and target have words at the same places.
__global__ void CopyWordsKernel(Cut cut) {
  CopyEdges(cut);
  auto* const to = reinterpret_cast<Word*>(cut.to + cut.head);
  const auto* const from = reinterpret_cast<const Word*>(cut.from + cut.head);
  const size_t stride = size_t{gridDim.x} * kThreads;
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < cut.words; i += stride) to[i] = from[i];
}

/// The aligned word at `at`, of which at least a byte is of the source; bytes outside of it are not read.
__device__ Word LoadWord(const Cut& cut, uintptr_t at) {
  const auto begin = reinterpret_cast<uintptr_t>(cut.from), end = begin + cut.bytes;
  if (at >= begin && at + kWord <= end) return *reinterpret_cast<const Word*>(at);
  uint64_t halves[2] = {0, 0};
  for (unsigned i = 0; i < kWord; ++i)
    if (at + i >= begin && at + i < end)
      halves[i / 8] |= static_cast<uint64_t>(*reinterpret_cast<const uint8_t*>(at + i)) << (i % 8 * 8);
  return {halves[0], halves[1]};
}

/// The word that begins at byte `skip`, 1 to 15, of two words.
__device__ Word Joined(const Word& low, const Word& high, unsigned skip) {
  const uint64_t first = skip < 8 ? low.x : low.y, second = skip < 8 ? low.y : high.x,
                 third = skip < 8 ? high.x : high.y;
  const unsigned bits = skip % 8 * 8;
  // In two steps: a shift by all 64 bits would be undefined.
  return {first >> bits | second << 1 << (63 - bits), second >> bits | third << 1 << (63 - bits)};
}

/// Words of the target lie across two of the source. Each word of the source is read once (by each warp):
/// what is read may be at the other end of a bus.
__global__ void CopyAcrossKernel(Cut cut) {
  CopyEdges(cut);
  auto* const to = reinterpret_cast<Word*>(cut.to + cut.head);
  const auto start = reinterpret_cast<uintptr_t>(cut.from) + cut.head;
  const auto skip = static_cast<unsigned>(start % kWord);
  const uintptr_t from = start - skip;
  const unsigned lane = threadIdx.x % kWarp;
  const size_t stride = size_t{gridDim.x} * kThreads;
  // A warp goes on as long as one of its threads has a word.
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i - lane < cut.words; i += stride) {
    const Word low = i <= cut.words ? LoadWord(cut, from + i * kWord) : Word{0, 0};
    Word high = {__shfl_down_sync(~0U, low.x, 1), __shfl_down_sync(~0U, low.y, 1)};
    if (i >= cut.words) continue;
    if (lane == kWarp - 1) high = LoadWord(cut, from + (i + 1) * kWord);
    to[i] = Joined(low, high, skip);
  }
}

}  // namespace

cudaError_t CopyBytes(std::byte* to, const std::byte* from, size_t bytes, const Launcher& launcher) {
  if (bytes == 0) return cudaSuccess;
  const auto target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  Cut cut{
      .to = to, .from = from, .bytes = bytes, .head = std::min<size_t>(-target % kWord, bytes), .words = 0};
  cut.words = (bytes - cut.head) / kWord;
  const auto kernel = (source - target) % kWord == 0 ? CopyWordsKernel : CopyAcrossKernel;
  const size_t blocks = std::clamp<size_t>((cut.words + kThreads - 1) / kThreads, 1, kMostBlocks);
  return launcher.Run(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, cut);
}

}  // namespace tilewire::gpu

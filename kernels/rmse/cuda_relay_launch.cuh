// Which contiguous segments RelayKernel takes, and in which shape. The choices are those that measured
// fastest.
#pragma once

#include <algorithm>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_relay.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int64_t kRelayBytes = 4608;  // of both operands that a warp copies at once, about
inline constexpr int64_t kRelaySweep = 6;     // blocks of a multiprocessor that take stages in turn

/// Most words of a segment that RelayKernel takes where a warp would read it in `rounds` rounds of 32 words:
/// the fewer of the last round's lanes are idle, the better are the kernels that need no copy. 0: none.
template <typename E>
int64_t MostRelayWords(int64_t rounds) {
  struct Most {
    int64_t two, three, four, five;
  };
  constexpr size_t kSize = sizeof(typename E::Type);
  constexpr Most kMost = kSize == 1                ? Most{40, 80, 0, 0}
                         : kSize == 2 && E::kExact ? Most{52, 90, 0, 0}
                         : kSize == 2              ? Most{57, 96, 112, 142}
                         : kSize == 4              ? Most{0, 82, 0, 134}
                                                   : Most{0, 96, 106, 0};
  switch (rounds) {
    case 2:
      return kMost.two;
    case 3:
      return kMost.three;
    case 4:
      return kMost.four;
    case 5:
      return kMost.five;
    default:
      return 0;
  }
}

/// Whether RelayKernel is the better one for contiguous segments of `words`, and there are enough of them.
template <typename E>
bool SuitsRelay(const Work& work, int64_t words) {
  return work.layout.tiles == 1 && words <= MostRelayWords<E>(CeilDiv(words, 32)) &&
         work.range.segment_end - work.range.segment_begin > Multiprocessors() * 16;
}

/// Segments that SuitsRelay, whose operands are misaligned alike. cudaErrorNotSupported, and nothing
/// launched, where the device has too little shared memory.
template <typename E>
cudaError_t LaunchRelay(const Work& work, const gpu::Launcher& launcher) {
  const int64_t segment = work.layout.elements * static_cast<int64_t>(sizeof(typename E::Type));
  const int64_t segments = work.range.segment_end - work.range.segment_begin;
  const int64_t warps = Multiprocessors() * 64;  // fewer, and some of the device would be done early
  const int64_t per = std::clamp<int64_t>(kRelayBytes / (2 * segment) / kRelayJoint, 1, 16) * kRelayJoint;
  int64_t stages = 32 / per;
  while (stages > 1 && CeilDiv(segments, per * stages) < warps) stages /= 2;
  const Relay c{.per_stage = static_cast<int>(per),
                .stages = static_cast<int>(stages),
                .words = static_cast<int>(CeilDiv(per * segment + 15, 16)),
                .sweep = static_cast<int>(Multiprocessors() * kRelaySweep)};
  const int shared = kRelayWarps * 4 * c.words * 16;
  if (shared > kColumnShared && shared > MostShared()) return cudaErrorNotSupported;
  // Whole sweeps, and of the last as many blocks as its first stage needs.
  const int64_t stage = kRelayWarps * per, sweep = c.sweep * stage * stages, sweeps = segments / sweep;
  const int64_t blocks = sweeps * c.sweep + std::min<int64_t>(c.sweep, CeilDiv(segments % sweep, stage));
  return LaunchShared(launcher, RelayKernel<E>, blocks, kRelayWarps * 32, shared, work, c);
}

}  // namespace tilewire::rmse::cuda

// Which kernel for which box.
#include "kernels/transpose/cuda_pack.cuh"
#include "kernels/transpose/cuda_shift.cuh"
#include "kernels/transpose/cuda_tile.cuh"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::transpose {
namespace {

constexpr int64_t kShortAxis = 32;  // a tile would be mostly empty: packed boxes instead

/// Whether every offset from the box's first element fits a Divider<uint32_t>. (Kernels form no offset
/// outside it.)
bool FitsIn32Bits(const Box& box) {
  int64_t in_span = 0, out_span = 0;
  for (int a = 0; a < box.rank; ++a) {
    in_span += box.dims[a] * box.in_strides[a];
    out_span += box.dims[a] * box.out_strides[a];
  }
  constexpr int64_t kLimit = int64_t{1} << 31;
  return in_span < kLimit && out_span < kLimit;
}

/// Both fast axes contiguous, and at least half of every tile filled.
bool SuitsTiles(const Box& box) {
  const int x = box.rank - 1, y = box.OutputFastest();
  if (x == y || box.in_strides[x] != 1 || box.out_strides[y] != 1) return false;
  if (box.dims[x] < kShortAxis || box.dims[y] < kShortAxis) return false;
  constexpr int64_t kTile = 64;
  const int64_t covered = CeilDiv(box.dims[x], kTile) * CeilDiv(box.dims[y], kTile) * kTile * kTile;
  return 2 * box.dims[x] * box.dims[y] >= covered;
}

/// Whether groups of `count` elements along the fast axes stay whole and aligned everywhere in the box.
bool Groups(const Box& box, int64_t count, const void* in, const void* out) {
  const int x = box.rank - 1, y = box.OutputFastest();
  const auto bytes = static_cast<uint64_t>(count * box.element_bytes);
  bool good = box.dims[x] % count == 0 && box.dims[y] % count == 0 &&
              reinterpret_cast<uint64_t>(in) % bytes == 0 && reinterpret_cast<uint64_t>(out) % bytes == 0;
  for (int a = 0; a < box.rank; ++a) {
    good = good && (a == x || box.in_strides[a] % count == 0);
    good = good && (a == y || box.out_strides[a] % count == 0);
  }
  return good;
}

template <typename Index>
cudaError_t Tiles(const Box& box, const char* in, char* out, cudaStream_t stream) {
  const bool wide = Groups(box, 16 / box.element_bytes, in, out);
  const bool words = box.element_bytes < 4 && Groups(box, 4 / box.element_bytes, in, out);
  switch (box.element_bytes) {
    case 1:
      if (wide) return LaunchTiles<TileShape<uint32_t, 4, 4, 128, 128>, Index>(box, in, out, stream);
      if (words) return LaunchTiles<TileShape<uint32_t, 4, 1, 128, 128>, Index>(box, in, out, stream);
      return LaunchShifted<uint8_t, Index>(box, in, out, stream);
    case 2:
      if (wide) return LaunchTiles<TileShape<uint32_t, 2, 4, 128, 64>, Index>(box, in, out, stream);
      if (words) return LaunchTiles<TileShape<uint32_t, 2, 1, 128, 64>, Index>(box, in, out, stream);
      return LaunchShifted<uint16_t, Index>(box, in, out, stream);
    case 4:
      if (wide) return LaunchTiles<TileShape<uint32_t, 1, 4, 64, 64>, Index>(box, in, out, stream);
      return LaunchTiles<TileShape<uint32_t, 1, 1, 64, 128>, Index>(box, in, out, stream);
    case 8:
      if (wide) return LaunchTiles<TileShape<uint64_t, 1, 2, 64, 32>, Index>(box, in, out, stream);
      return LaunchTiles<TileShape<uint64_t, 1, 1, 64, 32>, Index>(box, in, out, stream);
    default:
      return LaunchTiles<TileShape<uint4, 1, 1, 32, 32>, Index>(box, in, out, stream);
  }
}

template <typename Index>
cudaError_t Packed(const Box& box, const char* in, char* out, cudaStream_t stream) {
  switch (box.element_bytes) {
    case 1:
      return LaunchPacked<uint8_t, Index>(box, in, out, stream);
    case 2:
      return LaunchPacked<uint16_t, Index>(box, in, out, stream);
    case 4:
      return LaunchPacked<uint32_t, Index>(box, in, out, stream);
    case 8:
      return LaunchPacked<uint64_t, Index>(box, in, out, stream);
    default:
      return LaunchPacked<uint4, Index>(box, in, out, stream);
  }
}

}  // namespace

cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out,
                      const gpu::Launcher& launcher) {
  const Box box = MakeBox(plan.layout(), range);
  const auto* from = static_cast<const char*>(in) + box.in_offset * box.element_bytes;
  auto* to = static_cast<char*>(out) + box.out_offset * box.element_bytes;
  if (box.rank == 0 || (box.rank == 1 && box.CopiesRows()))
    return cudaMemcpyAsync(to, from, static_cast<size_t>(box.elements() * box.element_bytes),
                           cudaMemcpyDeviceToDevice, launcher.stream());
  const bool small = FitsIn32Bits(box);
  if (SuitsTiles(box))
    return small ? Tiles<uint32_t>(box, from, to, launcher.stream())
                 : Tiles<uint64_t>(box, from, to, launcher.stream());
  return small ? Packed<uint32_t>(box, from, to, launcher.stream())
               : Packed<uint64_t>(box, from, to, launcher.stream());
}

}  // namespace tilewire::transpose

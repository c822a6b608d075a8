// Which kernel for which box of one element size, and with which tiles. Each size is compiled on its own.
#pragma once

#include <initializer_list>

#include "kernels/transpose/box_cuda.h"
#include "kernels/transpose/cuda_pack.cuh"
#include "kernels/transpose/cuda_skew.cuh"
#include "kernels/transpose/cuda_stage.cuh"
#include "kernels/transpose/cuda_tile.cuh"

namespace tilewire::transpose {

template <typename... Shape>
struct ShapeList {};

/// Aligned: tiles where all accesses can be 16 bytes wide. Loose: the others; the one that a box fills best
/// is taken. Their rates when full, and that of packed boxes with long runs, are parts of a device copy's, as
/// measured: the choice compares them.
template <int kBytes>
struct ElementTraits;

template <>
struct ElementTraits<1> {
  using Element = uint8_t;
  using Aligned = TileShape<uint32_t, 4, 4, 128, 128>;
  using Loose = ShapeList<SkewShape<Element, 32, 8>, SkewShape<Element, 16, 12>, SkewShape<Element, 64, 4>>;
  static constexpr int64_t kWantedSide = 512;
  static constexpr double kAlignedRate = 0.9, kLooseRate = 0.7, kPackedRate = 0.55;
};
template <>
struct ElementTraits<2> {
  using Element = uint16_t;
  using Aligned = TileShape<uint32_t, 2, 4, 128, 64>;
  using Loose = ShapeList<SkewShape<Element, 32, 16>, SkewShape<Element, 16, 24>, SkewShape<Element, 64, 8>>;
  static constexpr int64_t kWantedSide = 256;
  static constexpr double kAlignedRate = 0.9, kLooseRate = 0.77, kPackedRate = 0.62;
};
template <>
struct ElementTraits<4> {
  using Element = uint32_t;
  using Aligned = TileShape<uint32_t, 1, 4, 64, 64>;
  using Loose = ShapeList<SkewShape<Element, 32, 32>, SkewShape<Element, 64, 16>>;
  static constexpr int64_t kWantedSide = 256;
  static constexpr double kAlignedRate = 0.95, kLooseRate = 0.85, kPackedRate = 0.78;
};
template <>
struct ElementTraits<8> {
  using Element = uint64_t;
  using Aligned = TileShape<uint64_t, 1, 2, 64, 32>;
  using Loose = ShapeList<LineShape<Element, 32, 64>, LineShape<Element, 64, 64>>;
  static constexpr int64_t kWantedSide = 256;
  static constexpr double kAlignedRate = 0.97, kLooseRate = 0.93, kPackedRate = 0.5;
};
template <>
struct ElementTraits<16> {
  using Element = uint4;
  using Aligned = TileShape<uint4, 1, 1, 32, 32>;
  using Loose = ShapeList<>;  // nothing is looser than an element
  static constexpr int64_t kWantedSide = 256;
  static constexpr double kAlignedRate = 0.92, kLooseRate = 0, kPackedRate = 0.45;
};

/// The part of its tiles that a box fills.
template <typename Shape>
double Filled(const Sides& sides) {
  const int64_t x = CeilDiv(sides.x.extent, Shape::kX) * Shape::kX;
  const int64_t y = CeilDiv(sides.y.extent + Shape::kOverhang, Shape::kY) * Shape::kY;
  return static_cast<double>(sides.x.extent) / static_cast<double>(x) *
         (static_cast<double>(sides.y.extent) / static_cast<double>(y));
}

/// Whether groups of `count` elements along the fast axes stay whole and aligned everywhere in the box.
inline bool Groups(const Box& box, int64_t count, const void* in, const void* out) {
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

template <typename Shape>
inline constexpr bool kIsLine = false;
template <typename Element, int kX, int kY>
inline constexpr bool kIsLine<LineShape<Element, kX, kY>> = true;

/// What a box would be launched with: how well, and how.
struct Choice {
  double rate = 0;
  cudaError_t (*launch)(const Box&, const Sides&, const char*, char*, const gpu::Launcher&) = nullptr;
};

template <typename Shape, typename Index>
Choice LooseChoice(const Sides& sides, double full_rate) {
  // The ends of output rows of small elements are stored in pieces: measured, that costs as much as 64 bytes.
  const auto row = static_cast<double>(sides.y.extent) * Shape::kBytes;
  const double ends = Shape::kBytes <= 2 ? row / (row + 64) : 1;
  return {full_rate * Filled<Shape>(sides) * ends,
          [](const Box& box, const Sides& sides, const char* in, char* out, const gpu::Launcher& launcher) {
            if constexpr (kIsLine<Shape>)
              return LaunchTileKernel<Shape, Index>(LineKernel<Shape, Index>, box, sides, in, out, launcher);
            else
              return LaunchTileKernel<Shape, Index>(SkewKernel<Shape, Index>, box, sides, in, out, launcher);
          }};
}

/// The first shape is the fastest when full, so that others have to be fuller by this.
inline constexpr double kWorthAnotherShape = 1.06;

template <typename Index, typename... Shape>
Choice BestLoose(ShapeList<Shape...>, const Sides& sides, double full_rate) {
  Choice best;
  for (const Choice& choice : std::initializer_list<Choice>{LooseChoice<Shape, Index>(sides, full_rate)...})
    if (choice.rate > kWorthAnotherShape * best.rate) best = choice;
  return best;
}

template <int kBytes, typename Index>
Choice BestTiles(const Box& box, const Sides& sides, const char* in, const char* out) {
  using Traits = ElementTraits<kBytes>;
  using Aligned = typename Traits::Aligned;
  if (!sides.valid || box.CopiesRows()) return {};
  const Choice loose = BestLoose<Index>(typename Traits::Loose{}, sides, Traits::kLooseRate);
  if (!Groups(box, 16 / kBytes, in, out)) return loose;
  const double rate = Traits::kAlignedRate * Filled<Aligned>(sides);
  if (rate < loose.rate) return loose;
  return {rate, [](const Box& b, const Sides& s, const char* from, char* to, const gpu::Launcher& launcher) {
            return LaunchTileKernel<Aligned, Index>(TileKernel<Aligned, Index>, b, s, from, to, launcher);
          }};
}

template <int kBytes, typename Index>
cudaError_t LaunchIndexed(const Box& box, const char* in, char* out, const gpu::Launcher& launcher) {
  using Traits = ElementTraits<kBytes>;
  using Element = typename Traits::Element;
  const Sides sides = MakeSides(box, Traits::kWantedSide, Traits::kWantedSide);
  const Choice tiles = BestTiles<kBytes, Index>(box, sides, in, out);
  double packed = Traits::kPackedRate;
  if constexpr (kBytes <= 4) packed /= StageCost(box, ChooseStageChunks(box, kStageChunkBytes / kBytes));
  if (tiles.rate > packed) return tiles.launch(box, sides, in, out, launcher);
  if constexpr (kBytes <= 4) {
    // Short rows of words are their own runs on both sides: one pass is enough.
    bool suits = false;
    if (kBytes < 4 || !box.CopiesRows()) {
      const cudaError_t error = LaunchStaged<Element, Index>(box, in, out, launcher, &suits);
      if (suits) return error;
    }
  }
  return LaunchPacked<Element, Index>(box, in, out, launcher);
}

template <int kElementBytes>
cudaError_t LaunchElements(const Box& box, const char* in, char* out, bool offsets_fit_31_bits,
                           const gpu::Launcher& launcher) {
  return offsets_fit_31_bits ? LaunchIndexed<kElementBytes, uint32_t>(box, in, out, launcher)
                             : LaunchIndexed<kElementBytes, uint64_t>(box, in, out, launcher);
}

}  // namespace tilewire::transpose

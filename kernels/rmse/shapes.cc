// The tables of shapes by kind, and their names.
#include "kernels/rmse/shapes.h"

#include <span>
#include <string>

#include "kernels/rmse/choice.h"

namespace tilewire::rmse::cuda {

std::span<const RingShape> RingShapes(Kind kind) {
  switch (kind) {
    case Kind::kU8:
    case Kind::kU16:
      return kRingShapes<Kind::kU8>;
    case Kind::kU32:
    case Kind::kF32:
      return kRingShapes<Kind::kF32>;
    case Kind::kU64:
    case Kind::kF64:
      return kRingShapes<Kind::kF64>;
    case Kind::kF16:
    case Kind::kBF16:
      return kRingShapes<Kind::kF16>;
  }
  return {};
}

std::span<const StreamShape> StreamShapes(int size) {
  switch (size) {
    case 1:
      return kStreamShapes<1>;
    case 2:
      return kStreamShapes<2>;
    case 4:
      return kStreamShapes<4>;
    default:
      return kStreamShapes<8>;
  }
}

namespace {

std::string NameOf(TilesBy by) {
  const char* const names[] = {", by blocks", ", by warps, short segments", ", by warps, segments",
                               ", by warps, tiles"};
  return names[static_cast<int>(by)];
}

std::string NameOf(const StagedShape& shape) {
  const char* const by[] = {", by threads", ", by words", ", by warps"};
  std::string name = by[static_cast<int>(shape.by)];
  if (shape.by == StagedBy::kWords) return name + ", up to " + std::to_string(shape.step);
  if (shape.by == StagedBy::kThreads)
    name += shape.step == 0 ? ", any layout" : ", every " + std::to_string(shape.step) + " elements";
  return name;
}

std::string NameOf(const RingShape& shape) {
  if (shape.of == RingOf::kJoined) return ", joined rows";
  if (shape.of == RingOf::kJoinedInside) return ", joined rows from inside words";
  return ", pieces of " + std::to_string(shape.piece) + " bytes, " + std::to_string(shape.depth) +
         " in flight";
}

std::string NameOf(const StreamShape& shape) {
  std::string name = ", " + std::to_string(shape.columns) + (shape.vector ? " neighbours" : " columns apart");
  name += ", " + std::to_string(shape.batch) + " in flight";
  if (shape.rounds > 1) name += ", " + std::to_string(shape.rounds) + " rounds";
  return name + ", " + std::to_string(shape.levels) + " levels";
}

std::string NameOf(const WalkShape& shape) {
  const char* const unit[] = {" by elements", " by words", " by words apart", " by elements, any axes"};
  return ", " + std::to_string(shape.segments) + " segments" + unit[static_cast<int>(shape.unit)];
}

}  // namespace

std::string ShapeName(const Choice& choice) {
  const std::string name = kKernelNames[static_cast<int>(choice.kernel)];
  const auto at = static_cast<size_t>(choice.shape);
  switch (choice.kernel) {
    case Kernel::kTiles:
      return name + NameOf(kTilesShapes[at]);
    case Kernel::kGroups:
      return name + ", " + std::to_string(kGroupShapes[at].lanes) + " lanes, " +
             std::to_string(kGroupShapes[at].rows) + (kGroupShapes[at].rows == 1 ? " word" : " words");
    case Kernel::kStaged:
      return name + NameOf(kStagedShapes[at]);
    case Kernel::kRing:
      return name + NameOf(RingShapes(choice.kind)[at]);
    case Kernel::kStream:
      return name + NameOf(StreamShapes(SizeOf(choice.kind))[at]);
    case Kernel::kWalk:
      return name + NameOf(kWalkShapes[at]);
    case Kernel::kFinish:
      break;
  }
  return name;
}

}  // namespace tilewire::rmse::cuda

// Which kernel sums which layout, and in which shape. Pure: no CUDA, no state. Every kernel says at what
// share of the device's read rate it expects to sum a task, or refuses it; the best is taken.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/rmse/shapes.h"
#include "kernels/rmse/work.h"

namespace tilewire::rmse::cuda {

/// What the choice needs to know of a device.
struct Device {
  int64_t processors = 132;
  int64_t shared = 227 << 10;  ///< bytes that a block may ask for
};

/// What is to be summed, as far as the choice depends on it.
struct Task {
  Kind kind;
  Layout layout;
  Range range;
  bool whole = false;      ///< adjacent tiles of a segment may become one sum
  int a_at = 0, b_at = 0;  ///< bytes from a 16-byte boundary to where the operands begin
  Device device;

  int size() const { return SizeOf(kind); }
  int64_t segments() const { return range.segment_end - range.segment_begin; }
  int64_t tiles() const { return range.tile_end - range.tile_begin; }
  /// Extent of the innermost axis; 1 where there is none.
  int64_t innermost() const { return layout.rank > 0 ? layout.dims[layout.rank - 1] : 1; }
  int reduced_axes() const;
  /// Whether segments lie in one piece.
  bool contiguous() const;
  /// Whether the innermost axis is a batch axis.
  bool columns() const;
  /// Whether the operands begin at the same place of a word.
  bool alike() const { return a_at == b_at; }
  /// Whether the operands begin at multiples of `bytes`, up to 16.
  bool aligned(int64_t bytes) const { return a_at % bytes == 0 && b_at % bytes == 0; }
};

/// How one kernel would sum a task. Plain data.
struct Choice {
  Kind kind = Kind::kF32;
  Kernel kernel = Kernel::kWalk;
  int shape = 0;     ///< in the kernel's table
  double share = 0;  ///< of the read rate that is expected; what is more than another's is taken
  int64_t blocks = 0;
  int threads = 0;
  int shared = 0, shared_most = 0;  ///< bytes of a block: of this launch, of any
  int64_t sums = 1;                 ///< that a segment then has
  int batch = 1;                    ///< see Work
  Combine combine = Combine::kNone;
  union {
    Ring ring{};
    Columns columns;
    Staged staged;
    Walk walk;
  };
};

/// Keeps the best of the choices that it is given, and all of them where somebody wants them.
class Candidates {
 public:
  explicit Candidates(std::vector<Choice>* all = nullptr) : all_(all) {}
  void Add(const Choice& choice) {
    if (all_ != nullptr) all_->push_back(choice);
    if (choice.share > best_.share) best_ = choice;
  }
  const Choice& best() const { return best_; }

 private:
  Choice best_;
  std::vector<Choice>* all_;
};

// What each kernel says. Those that refuse a task add nothing.
void AddTiles(const Task& task, Candidates* candidates);
void AddGroups(const Task& task, Candidates* candidates);
void AddStaged(const Task& task, Candidates* candidates);
void AddRing(const Task& task, Candidates* candidates);
void AddStream(const Task& task, Candidates* candidates);
void AddWalk(const Task& task, Candidates* candidates);

/// The best choice for a task. Never fails: WalkKernel takes every task.
Choice Choose(const Task& task);
/// All that do not refuse it, in no order.
std::vector<Choice> AllChoices(const Task& task);

/// The kernel and its shape for people: "RingKernel, joined rows".
std::string ShapeName(const Choice& choice);

constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/// The tables of a kind and of an element's size.
std::span<const RingShape> RingShapes(Kind kind);
std::span<const StreamShape> StreamShapes(int size);

/// A choice with what all have in common.
Choice MakeChoice(const Task& task, Kernel kernel, int shape, double share);

}  // namespace tilewire::rmse::cuda

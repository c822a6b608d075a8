// The best of what the kernels offer.
#include "kernels/rmse/choice.h"

#include <algorithm>

namespace tilewire::rmse::cuda {

KindOf::KindOf(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      flip = 0x8080808080808080;
      [[fallthrough]];
    case DType::kU8:
      kind = Kind::kU8;
      break;
    case DType::kI16:
      flip = 0x8000800080008000;
      [[fallthrough]];
    case DType::kU16:
      kind = Kind::kU16;
      break;
    case DType::kI32:
      flip = 0x8000000080000000;
      [[fallthrough]];
    case DType::kU32:
      kind = Kind::kU32;
      break;
    case DType::kI64:
      flip = 0x8000000000000000;
      [[fallthrough]];
    case DType::kU64:
      kind = Kind::kU64;
      break;
    case DType::kF16:
      kind = Kind::kF16;
      break;
    case DType::kBF16:
      kind = Kind::kBF16;
      break;
    case DType::kF64:
      kind = Kind::kF64;
      break;
    case DType::kF32:
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;  // Plan::Make refuses all but f32
  }
}

int Task::reduced_axes() const {
  return static_cast<int>(std::count(layout.reduced, layout.reduced + layout.rank, true));
}

bool Task::contiguous() const {
  return layout.elements == 1 || (layout.reduced[layout.rank - 1] && reduced_axes() == 1);
}

bool Task::columns() const {
  return layout.elements > 1 && !layout.reduced[layout.rank - 1];
}

Choice MakeChoice(const Task& task, Kernel kernel, int shape, double share) {
  Choice choice;
  choice.kind = task.kind;
  choice.kernel = kernel;
  choice.shape = shape;
  choice.share = share;
  choice.threads = kBlockThreads;
  choice.shared_most = static_cast<int>(task.device.shared);
  choice.sums = task.layout.tiles;
  return choice;
}

namespace {

void AddAll(const Task& task, Candidates* candidates) {
  AddTiles(task, candidates);
  AddGroups(task, candidates);
  AddStaged(task, candidates);
  AddRing(task, candidates);
  AddStream(task, candidates);
  AddWalk(task, candidates);
}

}  // namespace

Choice Choose(const Task& task) {
  Candidates candidates;
  AddAll(task, &candidates);
  return candidates.best();
}

std::vector<Choice> AllChoices(const Task& task) {
  std::vector<Choice> all;
  Candidates candidates(&all);
  AddAll(task, &candidates);
  return all;
}

}  // namespace tilewire::rmse::cuda

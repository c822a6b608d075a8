// The ladders: which step follows which.
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {

std::span<const RmseStep> RmseSteps() {
  static const RmseStep steps[] = {
      kRmseAtomic,         kRmseThreadSums,  kRmseTreeDivergent, kRmseBlockSums,   kRmseTreeConflicts,
      kRmseTreeSequential, kRmseTreeAnySize, kRmseWarpShuffles,  kRmseVectorLoads, kRmseRegisterLimit,
      kRmseFastMath,       kRmseIndex32,     kRmseDoubleSums,    kRmseOurs};
  return steps;
}

std::span<const BatchedStep> BatchedSteps() {
  static const BatchedStep steps[] = {kBatchedBlockABatch, kBatchedBlocksABatch, kBatchedAdjacent,
                                      kBatchedOurs};
  return steps;
}

std::span<const MatrixStep> CopySteps() {
  static const MatrixStep steps[] = {kCopyNaive32x32, kCopyNaive1024x1, kCopyNaive1x1024,
                                     kCopySeveral,    kCopyVectors,     kCopyOurs};
  return steps;
}

std::span<const MatrixStep> TransposeSteps() {
  static const MatrixStep steps[] = {kTransposeNaive32x32,    kTransposeNaive1024x1, kTransposeNaive1x1024,
                                     kTransposeShared,        kTransposePadded,      kTransposeSeveral,
                                     kTransposeSeveralPadded, kTransposeIndex32,     kTransposeSwizzled,
                                     kTransposeOurs};
  return steps;
}

}  // namespace tilewire::ladder

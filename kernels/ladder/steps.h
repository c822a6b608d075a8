// Every step by name, as its own file defines it; the lists in steps.cc put them in order.
#pragma once

#include "kernels/ladder/ladder_cuda.h"

namespace tilewire::ladder {

extern const RmseStep kRmseAtomic, kRmseThreadSums, kRmseTreeDivergent, kRmseBlockSums, kRmseTreeConflicts,
    kRmseTreeSequential, kRmseTreeAnySize, kRmseWarpShuffles, kRmseVectorLoads, kRmseRegisterLimit,
    kRmseFastMath, kRmseIndex32, kRmseDoubleSums, kRmseOurs;

extern const BatchedStep kBatchedBlockABatch, kBatchedBlocksABatch, kBatchedAdjacent, kBatchedOurs;

extern const MatrixStep kCopyNaive32x32, kCopyNaive1024x1, kCopyNaive1x1024, kCopySeveral, kCopyVectors,
    kCopyOurs;

extern const MatrixStep kTransposeNaive32x32, kTransposeNaive1024x1, kTransposeNaive1x1024, kTransposeShared,
    kTransposePadded, kTransposeSeveral, kTransposeSeveralPadded, kTransposeIndex32, kTransposeSwizzled,
    kTransposeOurs;

}  // namespace tilewire::ladder

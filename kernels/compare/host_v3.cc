// The tile code for x86-64-v3 (AVX2, FMA); its compile options stand in sources.cmake.
#define TILEWIRE_COMPARE_ISA kHostV3
#define TILEWIRE_COMPARE_ISA_NAME "x86-64-v3"
#define TILEWIRE_COMPARE_SQUARES rmse::HostTilesV3
#include "kernels/compare/host_tiles.inc"

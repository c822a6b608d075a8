// The tile code for x86-64-v3 (AVX2, FMA); its compile options stand in sources.cmake.
#define TILEWIRE_RMSE_ENTRY HostTilesV3
#define TILEWIRE_RMSE_FINISH HostFinishV3
#include "kernels/rmse/host_tiles.inc"

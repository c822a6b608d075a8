// The tile code for x86-64-v4 (AVX-512); its compile options stand in sources.cmake.
#define TILEWIRE_RMSE_ENTRY HostTilesV4
#include "kernels/rmse/host_tiles.inc"

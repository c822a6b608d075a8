// The tile code for the compiler's default target; its compile options stand in sources.cmake.
#define TILEWIRE_RMSE_ENTRY HostTilesBase
#define TILEWIRE_RMSE_FINISH HostFinishBase
#include "kernels/rmse/host_tiles.inc"

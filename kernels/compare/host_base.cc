// The tile code for the compiler's default target; its compile options stand in sources.cmake.
#define TILEWIRE_COMPARE_ISA kHostBase
#define TILEWIRE_COMPARE_ISA_NAME "base"
#define TILEWIRE_COMPARE_SQUARES rmse::HostTilesBase
#include "kernels/compare/host_tiles.inc"

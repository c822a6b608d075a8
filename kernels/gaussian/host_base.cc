// The element code for the compiler's default target; its compile options stand in sources.cmake.
#define TILEWIRE_GAUSSIAN_ISA kHostBase
#define TILEWIRE_GAUSSIAN_ISA_NAME "base"
#include "kernels/gaussian/host_loop.inc"

// The element code for x86-64-v3 (AVX2, FMA); its compile options stand in sources.cmake.
#define TILEWIRE_GAUSSIAN_ISA kHostV3
#define TILEWIRE_GAUSSIAN_ISA_NAME "x86-64-v3"
#include "kernels/gaussian/host_loop.inc"

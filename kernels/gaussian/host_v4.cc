// The element code for x86-64-v4 (AVX-512); its compile options stand in sources.cmake.
#define TILEWIRE_GAUSSIAN_ISA kHostV4
#define TILEWIRE_GAUSSIAN_ISA_NAME "x86-64-v4"
#include "kernels/gaussian/host_loop.inc"

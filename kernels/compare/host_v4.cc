// The tile code for x86-64-v4 (AVX-512); its compile options stand in sources.cmake.
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined vectors in its own <immintrin.h> for mistakes of ours (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define TILEWIRE_COMPARE_ISA kHostV4
#define TILEWIRE_COMPARE_ISA_NAME "x86-64-v4"
#define TILEWIRE_COMPARE_SQUARES rmse::HostTilesV4
#include "kernels/compare/host_tiles.inc"

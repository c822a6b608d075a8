// What both devices compute from one source.
#pragma once

#ifdef __CUDACC__
#define TILEWIRE_HOST_DEVICE __host__ __device__
#else
#define TILEWIRE_HOST_DEVICE
#endif

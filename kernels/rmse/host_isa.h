// The host's tile code exists once per instruction set; this is the door between them and the dispatcher.
#pragma once

#include <span>

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse {

/// What HostRange was asked for, as plain data: code for wide instruction sets must not instantiate inline
/// functions that the linker could then hand to everyone.
struct HostWork {
  const void* a;
  const void* b;
  double* tile_sums;
  const Layout* layout;
  Range range;
  int64_t item_begin, item_end;
  DType dtype;
};

using HostTiles = void (*)(const HostWork& work);
void HostTilesBase(const HostWork& work);  ///< whatever the compiler's default target is
void HostTilesV3(const HostWork& work);    ///< x86-64-v3: AVX2, FMA, F16C
void HostTilesV4(const HostWork& work);    ///< x86-64-v4: AVX-512 F, BW, CD, DQ, VL

/// The last step of HostFinish, element by element: `count` segment sums become results. `result` overlaps
/// nothing.
using HostResults = void (*)(Output output, const double* sums, int64_t count, double elements,
                             double* result);
void HostFinishBase(Output output, const double* sums, int64_t count, double elements, double* result);
void HostFinishV3(Output output, const double* sums, int64_t count, double elements, double* result);
void HostFinishV4(Output output, const double* sums, int64_t count, double elements, double* result);

struct HostIsa {
  const char* name;  ///< "base", "x86-64-v3", "x86-64-v4"
  HostTiles tiles;
  HostResults results;
};

/// Those that this processor runs, best last. All give the same bits; tests run each of them.
std::span<const HostIsa> SupportedHostIsas();

}  // namespace tilewire::rmse

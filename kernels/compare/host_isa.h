// The host's tile code exists once per instruction set; this is the door between them and the dispatcher.
#pragma once

#include <span>

#include "kernels/compare/compare.h"

namespace tilewire::compare {

/// What HostRange was asked for, as plain data: code for wide instruction sets must not instantiate inline
/// functions that the linker could then hand to everyone.
struct HostWork {
  const void* a;
  const void* b;
  Planes planes;
  int64_t first, element;
  const rmse::Layout* layout;
  rmse::Range range;
  int64_t item_begin, item_end;
  DType dtype;
  Kept kept;
};
using HostTiles = void (*)(const HostWork& work);

/// How what is kept of whole segments becomes their values.
struct HostEnding {
  double elements;  ///< of a segment
  bool integers;    ///< keys are integers, not bits of doubles
};
/// The last step, segment by segment: `count` of them, from the start of `planes` to the start of `values`.
using HostResults = void (*)(const HostEnding& ending, const Planes& planes, int64_t count,
                             const Values& values);

struct HostIsa {
  const char* name;  ///< "base", "x86-64-v3", "x86-64-v4"
  HostTiles tiles;
  HostResults results;
};
extern const HostIsa kHostBase;  ///< whatever the compiler's default target is
extern const HostIsa kHostV3;    ///< x86-64-v3: AVX2, FMA, F16C
extern const HostIsa kHostV4;    ///< x86-64-v4: AVX-512 F, BW, CD, DQ, VL

/// Those that this processor runs, best last. All give the same bits; tests run each of them.
std::span<const HostIsa* const> SupportedHostIsas();

}  // namespace tilewire::compare

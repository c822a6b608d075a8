// CRC-32C piece by piece. Private to proto/wire and its tests; others call wire::Crc32c.
#pragma once

#include <cstdint>

#include "proto/wire/codec.h"

namespace tilewire::wire {

/// Continues a CRC-32C over `data`. Start with `state` = 0xffffffff and invert the last state: that is the
/// checksum. Portable, a table of 8 × 256 entries; thread-safe.
uint32_t Crc32cTable(uint32_t state, Bytes data);

}  // namespace tilewire::wire

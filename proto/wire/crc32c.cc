#include <isa-l/crc.h>

#include <algorithm>

#include "proto/wire/codec.h"

namespace tilewire::wire {

uint32_t Crc32c(const Pieces& data) {
  // isa-l counts in int and neither inverts the initial nor the final state; it does not write to the buffer.
  constexpr size_t kMaxBytes = size_t{1} << 30;
  uint32_t state = 0xffffffff;
  for (Bytes piece : data) {
    while (!piece.empty()) {
      const size_t bytes = std::min(piece.size(), kMaxBytes);
      state = crc32_iscsi(const_cast<uint8_t*>(piece.data()), static_cast<int>(bytes), state);
      piece = piece.subspan(bytes);
    }
  }
  return ~state;
}

}  // namespace tilewire::wire

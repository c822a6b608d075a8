#include "proto/wire/crc32c.h"

#include <algorithm>
#include <array>

#if TILEWIRE_HAVE_ISAL
#include <isa-l/crc.h>
#endif

namespace tilewire::wire {
namespace {

using Table = std::array<std::array<uint32_t, 256>, 8>;

/// table[k][b] is the state after byte b and k zero bytes, so that eight bytes are folded in one step.
constexpr Table MakeTable() {
  constexpr uint32_t kReversedPolynomial = 0x82f63b78;  // Castagnoli
  Table table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kReversedPolynomial : 0);
    table[0][b] = state;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
  }
  return table;
}
constexpr Table kTable = MakeTable();

uint32_t Update(uint32_t state, Bytes data) {
#if TILEWIRE_HAVE_ISAL
  // isa-l counts in int and neither inverts the initial nor the final state; it does not write to the buffer.
  constexpr size_t kMaxBytes = size_t{1} << 30;
  while (!data.empty()) {
    const size_t bytes = std::min(data.size(), kMaxBytes);
    state = crc32_iscsi(const_cast<uint8_t*>(data.data()), static_cast<int>(bytes), state);
    data = data.subspan(bytes);
  }
  return state;
#else
  return Crc32cTable(state, data);
#endif
}

}  // namespace

uint32_t Crc32cTable(uint32_t state, Bytes data) {
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    const uint8_t* p = data.data() + i;
    state = kTable[7][p[0] ^ (state & 0xff)] ^ kTable[6][p[1] ^ (state >> 8 & 0xff)] ^
            kTable[5][p[2] ^ (state >> 16 & 0xff)] ^ kTable[4][p[3] ^ (state >> 24)] ^ kTable[3][p[4]] ^
            kTable[2][p[5]] ^ kTable[1][p[6]] ^ kTable[0][p[7]];
  }
  for (; i < data.size(); ++i) state = (state >> 8) ^ kTable[0][(state ^ data[i]) & 0xff];
  return state;
}

uint32_t Crc32c(const Pieces& data) {
  uint32_t state = 0xffffffff;
  for (const Bytes piece : data) state = Update(state, piece);
  return ~state;
}

}  // namespace tilewire::wire

#include "server/engine/random_id.h"

#include <sys/random.h>

#include <cstdint>
#include <random>

namespace tilewire::engine {

std::string RandomHex() {
  // std::random_device may take 15 µs a number.
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = std::random_device{}() * 0x9e3779b97f4a7c15u;
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[bits >> shift & 15];
  return text;
}

}  // namespace tilewire::engine

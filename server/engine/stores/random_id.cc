#include "server/engine/stores/random_id.h"

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

namespace tilewire::engine {

std::string RandomHex() {
  // std::random_device may take 15 µs a number, and every job wants one: many at a time.
  thread_local std::array<uint64_t, 32> drawn;
  thread_local size_t left = 0;
  if (left == 0 && getrandom(drawn.data(), sizeof drawn, 0) == sizeof drawn) left = drawn.size();
  const uint64_t bits = left > 0 ? drawn[--left] : std::random_device{}() * 0x9e3779b97f4a7c15u;
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[bits >> shift & 15];
  return text;
}

}  // namespace tilewire::engine

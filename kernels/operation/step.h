// A piece of a problem's work, and the memory that it works on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilewire {

inline constexpr int kMaxOperands = 8;
inline constexpr int kMaxResults = 8;

/// One of a problem's ranges, or what is left to do once all of them are done.
struct Step {
  int64_t range = 0;  ///< < 0: the finish

  static constexpr Step Finish() { return {-1}; }
  constexpr bool is_finish() const { return range < 0; }
};

/// Where a problem's arrays lie, in memory that kernels reach. Small enough to be handed around by value.
struct Buffers {
  std::array<std::byte*, kMaxOperands> operands{};
  /// The result area: every result at its Problem::result_offset().
  std::byte* result = nullptr;
  std::byte* scratch = nullptr;  ///< null when scratch_bytes() is 0
};

/// Bytes [begin, end).
struct ByteInterval {
  int64_t begin, end;
};

}  // namespace tilewire

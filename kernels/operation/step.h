// A piece of a problem's work, and the memory that it works on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilewire {

inline constexpr int kMaxOperands = 8;
/// More than operands: an operation may return every metric of a pair of arrays.
inline constexpr int kMaxResults = 16;

/// One of a problem's ranges, or what is left to do once all of them are done.
struct Step {
  int64_t range = 0;  ///< < 0: the finish

  static constexpr Step Finish() { return {-1}; }
  constexpr bool is_finish() const { return range < 0; }
};

/// Where a problem's arrays lie, in memory that kernels reach. Small enough to be handed around by value.
struct Buffers {
  std::array<std::byte*, kMaxOperands> operands{};
  /// One after the other in one area (Problem::PlaceResults), or each in memory of its own where it is to
  /// stay as an array of its own. Aligned to kResultAlignment.
  std::array<std::byte*, kMaxResults> results{};
  std::byte* scratch = nullptr;  ///< null when scratch_bytes() is 0
};

/// Bytes [begin, end).
struct ByteInterval {
  int64_t begin, end;
};

}  // namespace tilewire

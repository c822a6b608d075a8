// What every fuzz target shares: reading decisions out of the input, and checks that end the program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "kernels/array/status.h"

/// Ends the program with the place and the condition: libFuzzer and the replay program then keep the input.
#define FUZZ_CHECK(condition)                                                            \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

/// The entry point of libFuzzer; one a target.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tilewire::fuzz {

/// The input as a row of decisions; zeros once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  std::span<const uint8_t> rest() const { return rest_; }
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  int Below(int n) { return Byte() % n; }
  uint64_t Word(int bytes) {
    uint64_t word = 0;
    for (int i = 0; i < bytes; ++i) word |= uint64_t{Byte()} << (8 * i);
    return word;
  }
  /// An extent or an axis: mostly small, sometimes any 64 bits.
  int64_t Extent() {
    switch (Below(8)) {
      case 0:
        return static_cast<int64_t>(Word(8));
      case 1:
        return static_cast<int64_t>(Word(3));
      case 2:
        return static_cast<int64_t>(Word(2));
      default:
        return 1 + Below(20);
    }
  }
  std::vector<int64_t> Dims() {
    std::vector<int64_t> dims(static_cast<size_t>(Below(18)));
    for (int64_t& dim : dims) dim = Extent();
    return dims;
  }
  std::vector<int32_t> Axes() {
    std::vector<int32_t> axes(static_cast<size_t>(Below(18)));
    for (int32_t& axis : axes)
      axis = Below(12) == 0 ? static_cast<int32_t>(Word(4)) : static_cast<int8_t>(Byte()) % 17;
    return axes;
  }

 private:
  std::span<const uint8_t> rest_;
};

/// A refusal of a request must say that the request is to blame, and why.
inline void CheckRefusal(const Status& status) {
  FUZZ_CHECK(status.code() == Code::kInvalidArgument);
  FUZZ_CHECK(!status.reason().empty() && !status.message().empty());
}

/// Which of `count` things to look at when all are too many: the first and last, and even steps between.
inline std::vector<int64_t> Sample(int64_t count, int64_t most) {
  std::vector<int64_t> out;
  if (count <= most) {
    for (int64_t i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
  for (int64_t i = 0; i < most - 1; ++i) out.push_back(count / most * i);
  out.push_back(count - 1);
  return out;
}

}  // namespace tilewire::fuzz

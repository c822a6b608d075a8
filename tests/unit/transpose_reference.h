// What the transpose tests share: a straightforward permutation to compare with, and random cases.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {

struct Case {
  DType dtype;
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;

  std::string ToString() const {
    std::string text(Name(dtype));
    for (const int64_t d : dims) text += " " + std::to_string(d);
    text += " by";
    for (const int32_t a : axes) text += " " + std::to_string(a);
    return text;
  }
};

inline Plan MakePlan(const Case& c) {
  auto spec = MakeSpec(c.dtype, c.dims);
  EXPECT_TRUE(spec) << c.ToString();
  auto plan = Plan::Make(*spec, c.axes);
  EXPECT_TRUE(plan) << c.ToString() << ": " << plan.error().ToString();
  return *plan;
}

/// Element by element over the output's coordinates; knows nothing of plans, layouts or bands.
inline std::vector<char> Reference(const Case& c, const std::vector<char>& in) {
  const size_t rank = c.dims.size(), size = static_cast<size_t>(SizeOf(c.dtype));
  std::vector<size_t> extent(rank), stride(rank), at(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis =
        c.axes.empty() ? rank - 1 - i : static_cast<size_t>((c.axes[i] + static_cast<int>(rank))) % rank;
    extent[i] = static_cast<size_t>(c.dims[axis]);
    stride[i] = size;
    for (size_t a = axis + 1; a < rank; ++a) stride[i] *= static_cast<size_t>(c.dims[a]);
  }
  std::vector<char> out(in.size());
  size_t from = 0;
  for (size_t to = 0; to < out.size(); to += size) {
    std::memcpy(&out[to], &in[from], size);
    for (size_t i = rank; i-- > 0;) {
      from += stride[i];
      if (++at[i] < extent[i]) break;
      from -= extent[i] * stride[i];
      at[i] = 0;
    }
  }
  return out;
}

/// Bytes without a pattern, so that a misplaced element shows.
inline std::vector<char> RandomBytes(int64_t count, uint64_t seed) {
  std::vector<char> bytes(static_cast<size_t>(count));
  uint64_t state = seed * 2 + 1;
  for (char& b : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<char>(state >> 56);
  }
  return bytes;
}

/// A random dtype, rank, shape of at most about `max_elements`, and permutation.
inline Case RandomCase(std::mt19937_64& random, int64_t max_elements) {
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Case c;
  c.dtype = AllDTypes()[static_cast<size_t>(below(static_cast<int64_t>(AllDTypes().size())))].dtype;
  const int64_t rank = below(4) == 0 ? below(kMaxRank + 1) : 1 + below(5);
  constexpr int64_t kExtents[] = {1,  2,  3,  4,  5,   7,   8,   13,  16,  17,  31,   32,  33,
                                  61, 64, 65, 96, 127, 128, 131, 200, 256, 257, 1021, 4099};
  int64_t room = max_elements;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t d = kExtents[below(std::size(kExtents))];
    while (d > room || (d > 8 && below(rank) > 2)) d = d / 2 > 0 ? d / 2 : 1;
    room /= d;
    c.dims.push_back(d);
    c.axes.push_back(static_cast<int32_t>(i));
  }
  std::shuffle(c.dims.begin(), c.dims.end(), random);
  std::shuffle(c.axes.begin(), c.axes.end(), random);
  for (int32_t& axis : c.axes)
    if (below(3) == 0) axis -= static_cast<int32_t>(rank);
  if (below(8) == 0) c.axes.clear();
  return c;
}

/// Shapes that have broken transposes before.
inline std::vector<Case> KnownHardCases() {
  const std::vector<int32_t> kReversed;
  std::vector<Case> cases;
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kC128}) {
    cases.insert(cases.end(), {
                                  {dtype, {}, kReversed},
                                  {dtype, {1, 1, 1}, {2, 0, 1}},
                                  {dtype, {100003, 3}, kReversed},
                                  {dtype, {3, 100003}, kReversed},
                                  {dtype, {std::vector<int64_t>(16, 2)}, kReversed},
                                  {dtype, {31, 549, 2, 3}, {3, 1, 0, 2}},
                                  {dtype, {31, 549, 2, 3}, {2, 3, 0, 1}},
                                  {dtype, {31, 549, 2, 3}, {0, 2, 1, 3}},
                                  {dtype, {1021, 509}, kReversed},
                                  {dtype, {1024, 512}, kReversed},
                                  {dtype, {640, 1000}, kReversed},
                                  {dtype, {7, 333, 222}, {0, 2, 1}},
                                  {dtype, {333, 7, 222}, {1, 0, 2}},
                                  {dtype, {12, 20, 30, 40}, {1, 3, 0, 2}},
                                  {dtype, {65537, 5}, kReversed},
                                  {dtype, {64, 1, 70, 1, 66}, {4, 3, 2, 1, 0}},
                              });
  }
  return cases;
}

}  // namespace tilewire::transpose

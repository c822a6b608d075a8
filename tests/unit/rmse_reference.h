// The contract rmse.1, written out as plainly as it reads: the oracle of the RMSE tests. It shares nothing
// with the kernels but the dtype table.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse::reference {

using Bytes = std::vector<unsigned char>;
__extension__ using Wide = __int128;

template <typename T>
T Read(const Bytes& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

inline double Half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, (exponent == 0 ? 1 : exponent) - 25);
  if (exponent == 31) value = mantissa != 0 ? NAN : INFINITY;
  return bits >> 15 != 0 ? -value : value;
}

inline double BFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

template <typename T>
double Plain(const Bytes& a, const Bytes& b, int64_t i) {
  return static_cast<double>(Read<T>(a, i)) - static_cast<double>(Read<T>(b, i));
}

inline double Difference(DType dtype, const Bytes& a, const Bytes& b, int64_t i) {
  switch (dtype) {
    case DType::kI8:
      return Plain<int8_t>(a, b, i);
    case DType::kU8:
      return Plain<uint8_t>(a, b, i);
    case DType::kI16:
      return Plain<int16_t>(a, b, i);
    case DType::kU16:
      return Plain<uint16_t>(a, b, i);
    case DType::kI32:
      return Plain<int32_t>(a, b, i);
    case DType::kU32:
      return Plain<uint32_t>(a, b, i);
    case DType::kI64: {
      const auto x = static_cast<Wide>(Read<int64_t>(a, i)), y = static_cast<Wide>(Read<int64_t>(b, i));
      return static_cast<double>(static_cast<uint64_t>(x < y ? y - x : x - y));
    }
    case DType::kU64: {
      const auto x = Read<uint64_t>(a, i), y = Read<uint64_t>(b, i);
      return static_cast<double>(x < y ? y - x : x - y);
    }
    case DType::kF16:
      return Half(Read<uint16_t>(a, i)) - Half(Read<uint16_t>(b, i));
    case DType::kBF16:
      return BFloat(Read<uint16_t>(a, i)) - BFloat(Read<uint16_t>(b, i));
    case DType::kF32:
      return Plain<float>(a, b, i);
    case DType::kF64:
      return Plain<double>(a, b, i);
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;
  }
  return NAN;
}

/// One segment: its differences in row-major order.
inline double Finish(const std::vector<double>& differences, Output output) {
  std::vector<double> sums;
  for (size_t begin = 0; begin < differences.size(); begin += 4096) {
    double acc[256] = {};
    for (size_t i = begin; i < std::min(begin + 4096, differences.size()); ++i)
      acc[(i - begin) % 256] = std::fma(differences[i], differences[i], acc[(i - begin) % 256]);
    for (int s = 128; s >= 1; s /= 2)
      for (int i = 0; i < s; ++i) acc[i] = acc[i] + acc[i + s];
    sums.push_back(acc[0]);
  }
  while (sums.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(sums[i] + sums[i + 1]);
    if (sums.size() % 2 != 0) next.push_back(sums.back());
    sums = next;
  }
  double value = sums[0];
  if (output != Output::kSumSquares) value /= static_cast<double>(differences.size());
  if (output == Output::kRmse) value = std::sqrt(value);
  return value;
}

/// The number of the segment that each element belongs to, by walking the array; `axes` as a request lists
/// them.
inline std::vector<int64_t> SegmentOfElement(const Shape& shape, const std::vector<int32_t>& axes) {
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), axes.empty());
  for (const int32_t axis : axes) reduced[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  std::vector<int64_t> segment(static_cast<size_t>(shape.elements())), at(static_cast<size_t>(shape.rank()));
  for (int64_t& number : segment) {
    number = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (!reduced[static_cast<size_t>(axis)])
        number = number * shape.dim(axis) + at[static_cast<size_t>(axis)];
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++at[static_cast<size_t>(axis)] < shape.dim(axis)) break;
      at[static_cast<size_t>(axis)] = 0;
    }
  }
  return segment;
}

/// All segments. NaNs are not canonical here.
inline std::vector<double> Rmse(const ArraySpec& spec, const std::vector<int32_t>& axes, Output output,
                                const Bytes& a, const Bytes& b) {
  const std::vector<int64_t> segment = SegmentOfElement(spec.shape, axes);
  std::vector<std::vector<double>> differences;
  for (int64_t i = 0; i < spec.shape.elements(); ++i) {
    const auto number = static_cast<size_t>(segment[static_cast<size_t>(i)]);
    if (differences.size() <= number) differences.resize(number + 1);
    differences[number].push_back(Difference(spec.dtype, a, b, i));
  }
  std::vector<double> result;
  for (const auto& one : differences) result.push_back(Finish(one, output));
  return result;
}

/// Bits, with every NaN the canonical one.
inline uint64_t Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return value == value ? bits : 0x7ff8000000000000;
}

/// Random bytes, which as floats hold every kind of value; with `tame`, floats stay finite and near 1, so
/// that sums round instead of being infinite or NaN.
inline Bytes RandomOperand(const ArraySpec& spec, bool tame, std::mt19937_64& random) {
  Bytes bytes(static_cast<size_t>(spec.bytes()));
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  if (!tame || Info(spec.dtype).kind != DTypeKind::kFloat) return bytes;
  const auto size = static_cast<size_t>(SizeOf(spec.dtype));
  for (size_t i = 0; i < bytes.size(); i += size) {
    const auto value = static_cast<double>(random() >> 11) * 0x1p-51 - 2.0;
    if (spec.dtype == DType::kF64) {
      std::memcpy(&bytes[i], &value, 8);
    } else if (spec.dtype == DType::kF32) {
      const auto narrow = static_cast<float>(value);
      std::memcpy(&bytes[i], &narrow, 4);
    } else {  // f16 and bf16: any mantissa, an exponent near the bias
      const uint16_t exponent = static_cast<uint16_t>(spec.dtype == DType::kF16 ? (12 + random() % 6) << 10
                                                                                : (124 + random() % 6) << 7);
      const uint16_t keep = spec.dtype == DType::kF16 ? 0x83ff : 0x807f;
      uint16_t bits;
      std::memcpy(&bits, &bytes[i], 2);
      bits = static_cast<uint16_t>((bits & keep) | exponent);
      std::memcpy(&bytes[i], &bits, 2);
    }
  }
  return bytes;
}

struct RandomCase {
  ArraySpec spec;
  std::vector<int32_t> axes;
  Output output;
};

/// Shapes of 1 to about `most` elements: ranks 0 to 6, any axes, any real dtype, extents that like the edges.
inline RandomCase MakeRandomCase(int64_t most, std::mt19937_64& random) {
  static constexpr int64_t kEdges[] = {1,   1,   2,    3,    4,    5,    7,    8,    15,    16,
                                       17,  31,  64,   65,   127,  128,  129,  255,  256,   257,
                                       300, 511, 1000, 4095, 4096, 4097, 8192, 8193, 12289, 20000};
  std::vector<int64_t> dims(random() % 7);
  int64_t room = most;
  for (auto& dim : dims) {
    dim = kEdges[random() % std::size(kEdges)];
    if (dim > room) dim = 1 + static_cast<int64_t>(random() % 4);
    if (dim > room) dim = 1;
    room /= dim;
  }
  std::shuffle(dims.begin(), dims.end(), random);
  std::vector<int32_t> axes;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (random() % 2 != 0)
      axes.push_back(static_cast<int32_t>(axis) -
                     (random() % 2 != 0 ? static_cast<int32_t>(dims.size()) : 0));
  std::shuffle(axes.begin(), axes.end(), random);
  const auto dtype = static_cast<DType>(2 + random() % 12);
  return {*MakeSpec(dtype, dims), axes, static_cast<Output>(random() % 3)};
}

inline std::string Describe(const RandomCase& one) {
  std::string text = std::string(Name(one.spec.dtype)) + one.spec.shape.ToString() + " axes";
  for (const int32_t axis : one.axes) text += " " + std::to_string(axis);
  return text + " output " + std::to_string(static_cast<int>(one.output));
}

}  // namespace tilewire::rmse::reference

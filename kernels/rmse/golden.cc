#include "kernels/rmse/golden.h"

#include <cstring>

namespace tilewire::rmse {
namespace {

#include "kernels/rmse/golden_table.inc"

// Field widths of an IEEE format; zero mantissa bits for integers.
struct Format {
  int bits;
  int mantissa;
  uint64_t bias;
};

Format FormatOf(DType dtype) {
  const int bits = 8 * SizeOf(dtype);
  switch (dtype) {
    case DType::kF16:
      return {bits, 10, 15};
    case DType::kBF16:
      return {bits, 7, 127};
    case DType::kF32:
      return {bits, 23, 127};
    case DType::kF64:
      return {bits, 52, 1023};
    case DType::kBool:
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
    case DType::kC64:
    case DType::kC128:
      break;
  }
  return {bits, 0, 0};
}

constexpr uint64_t LowBits(int count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

uint64_t Word(uint64_t seed, uint64_t i, uint64_t operand) {
  uint64_t z = seed + (2 * i + operand + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// sign = bit 63 of the word, mantissa = its low bits, exponent field = base + bits 56 to 59.
uint64_t Float(const Format& f, uint64_t word, uint64_t base, uint64_t spread) {
  const uint64_t exponent = base + ((word >> 56 & 15) & spread);
  return word >> 63 << (f.bits - 1) | exponent << f.mantissa | (word & LowBits(f.mantissa));
}

uint64_t ElementBits(const GoldenCase& golden, const Format& f, uint64_t i, uint64_t operand) {
  const auto n = static_cast<uint64_t>(golden.n);
  const uint64_t seed =
      static_cast<uint64_t>(golden.dtype) << 40 | static_cast<uint64_t>(golden.pattern) << 32 | n;
  const uint64_t word = Word(seed, i, operand);
  const uint64_t sign = uint64_t{1} << (f.bits - 1);
  const uint64_t infinity = LowBits(f.bits - 1) & ~LowBits(f.mantissa);
  switch (golden.pattern) {
    case GoldenPattern::kNan:
      if (operand == 0 && i == n / 2) return infinity | uint64_t{1} << (f.mantissa - 1) | 5;
      break;
    case GoldenPattern::kInf:
      if (operand == 1 && i == n - 1) return sign | infinity;
      break;
    case GoldenPattern::kInfMinusInf:
      if (i == n / 2) return infinity;
      break;
    case GoldenPattern::kZeros:
      return (i + operand) % 2 != 0 ? sign : 0;
    case GoldenPattern::kSubnormals:
      return Float(f, word, 0, 0);
    case GoldenPattern::kHuge:
      return (infinity - 1) | (operand == 1 ? sign : 0);
    case GoldenPattern::kTiny:
      return Float(f, word, f.bias - 540, 15);
    case GoldenPattern::kExtremes: {
      const bool is_signed = Info(golden.dtype).kind == DTypeKind::kSigned;
      const bool smallest = (i + operand) % 2 == 0;
      if (smallest) return is_signed ? sign : 0;
      return is_signed ? sign - 1 : LowBits(f.bits);
    }
    case GoldenPattern::kUniform:
      break;
  }
  return f.mantissa == 0 ? word & LowBits(f.bits) : Float(f, word, f.bias - 8, 15);
}

}  // namespace

std::span<const GoldenCase> GoldenCases() {
  return kGoldenCases;
}

void FillGolden(const GoldenCase& golden, void* a, void* b) {
  const Format format = FormatOf(golden.dtype);
  const auto size = static_cast<size_t>(SizeOf(golden.dtype));
  for (uint64_t operand = 0; operand < 2; ++operand) {
    auto* out = static_cast<unsigned char*>(operand == 0 ? a : b);
    for (uint64_t i = 0; i < static_cast<uint64_t>(golden.n); ++i) {
      const uint64_t bits = ElementBits(golden, format, i, operand);
      std::memcpy(out + i * size, &bits, size);  // little-endian: the low bytes come first
    }
  }
}

}  // namespace tilewire::rmse

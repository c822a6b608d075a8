// Element types: the one table in code (its twin is tilewire.v1.DType in proto/tilewire/v1/types.proto).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tilewire {

/// Numbers equal tilewire.v1.DType.
enum class DType : uint8_t {
  kBool = 1,
  kI8 = 2,
  kU8 = 3,
  kI16 = 4,
  kU16 = 5,
  kI32 = 6,
  kU32 = 7,
  kI64 = 8,
  kU64 = 9,
  kF16 = 10,
  kBF16 = 11,
  kF32 = 12,
  kF64 = 13,
  kC64 = 14,
  kC128 = 15,
};

enum class DTypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex };

struct DTypeInfo {
  DType dtype;
  std::string_view name;       ///< "f32"
  std::string_view npy_descr;  ///< what numpy writes for it ("<f4"); bf16 as ml_dtypes writes it ("<V2")
  int size;                    ///< bytes of one element: 1, 2, 4, 8 or 16
  DTypeKind kind;
};

/// All dtypes in the order of their numbers.
std::span<const DTypeInfo> AllDTypes();
const DTypeInfo& Info(DType dtype);
inline int SizeOf(DType dtype) {
  return Info(dtype).size;
}
inline std::string_view Name(DType dtype) {
  return Info(dtype).name;
}
/// The dtype with that number on the wire, or nothing.
std::optional<DType> DTypeFromNumber(int number);
std::optional<DType> DTypeFromName(std::string_view name);
/// Whether differences make sense: everything but bool and complex.
inline bool IsReal(DType dtype) {
  return Info(dtype).kind != DTypeKind::kBool && Info(dtype).kind != DTypeKind::kComplex;
}

}  // namespace tilewire

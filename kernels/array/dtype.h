// Element types: the one table in code (its twin is tilewire.v1.DType in proto/tilewire/v1/types.proto).
//
// A new one touches, beside these two (switches over dtypes have no default, so the compiler names them):
// - this enum and table: DTypeKind, and IsReal where it can be subtracted; NumPy's name for .npy files
// - rmse: KindOf (choice.cc), Kind and cuda_element.cuh; host_tiles.inc, host_load.inc; golden.cc, and
//   tests/unit/golden/make_golden.py for its vectors; the dtypes that plan.cc lists for people
// - compare: host_tiles.inc, host_pairs.inc, compare.cu and a cuda_*.cu; tests/unit/golden/make_compare.py
// - transpose moves sizes, not dtypes; gaussian: plan.cc says which it takes
// - bench: data.cu, host_cases.cc, host_rmse.cc, rmse_torch.py, permute_torch.py
// - client: cli/values.cc, load/inputs.cc; python: _arrays.py, _dlpack.py, pure/tilewire_pure.py
// - tests: rmse_reference.h, compare_reference.h, and texts that list dtypes (errors_open_test.cc)
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

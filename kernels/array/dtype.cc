#include "kernels/array/dtype.h"

#include <array>

namespace tilewire {
namespace {
constexpr std::array<DTypeInfo, 15> kTable = {{
    {DType::kBool, "bool", "|b1", 1, DTypeKind::kBool},
    {DType::kI8, "i8", "|i1", 1, DTypeKind::kSigned},
    {DType::kU8, "u8", "|u1", 1, DTypeKind::kUnsigned},
    {DType::kI16, "i16", "<i2", 2, DTypeKind::kSigned},
    {DType::kU16, "u16", "<u2", 2, DTypeKind::kUnsigned},
    {DType::kI32, "i32", "<i4", 4, DTypeKind::kSigned},
    {DType::kU32, "u32", "<u4", 4, DTypeKind::kUnsigned},
    {DType::kI64, "i64", "<i8", 8, DTypeKind::kSigned},
    {DType::kU64, "u64", "<u8", 8, DTypeKind::kUnsigned},
    {DType::kF16, "f16", "<f2", 2, DTypeKind::kFloat},
    {DType::kBF16, "bf16", "<V2", 2, DTypeKind::kFloat},
    {DType::kF32, "f32", "<f4", 4, DTypeKind::kFloat},
    {DType::kF64, "f64", "<f8", 8, DTypeKind::kFloat},
    {DType::kC64, "c64", "<c8", 8, DTypeKind::kComplex},
    {DType::kC128, "c128", "<c16", 16, DTypeKind::kComplex},
}};

constexpr bool Ordered() {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<size_t>(kTable[i].dtype) != i + 1) return false;
  return true;
}
static_assert(Ordered(), "the table is indexed by the dtype's number");
}  // namespace

std::span<const DTypeInfo> AllDTypes() {
  return kTable;
}

const DTypeInfo& Info(DType dtype) {
  return kTable[static_cast<size_t>(dtype) - 1];
}

std::optional<DType> DTypeFromNumber(int number) {
  if (number < 1 || number > static_cast<int>(kTable.size())) return std::nullopt;
  return static_cast<DType>(number);
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const auto& info : kTable)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}

}  // namespace tilewire

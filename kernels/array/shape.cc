#include "kernels/array/shape.h"

namespace tilewire {

Result<Shape> Shape::Make(std::span<const int64_t> dims, std::string_view field) {
  if (dims.size() > kMaxRank)
    return BadValue(std::string(field) + " rank", std::to_string(dims.size()),
                    "0 to " + std::to_string(kMaxRank));
  Shape shape;
  shape.rank_ = static_cast<int>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1)
      return BadValue(std::string(field) + "[" + std::to_string(i) + "]", std::to_string(dims[i]),
                      "1 or more");
    if (__builtin_mul_overflow(shape.elements_, dims[i], &shape.elements_) ||
        shape.elements_ > kMaxArrayBytes)
      return BadValue(field, "a product over 2^60", "at most 2^60 elements");
    shape.dims_[i] = dims[i];
  }
  return shape;
}

std::string Shape::ToString() const {
  std::string text = "(";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(dims_[i]);
  return text + ")";
}

Result<ArraySpec> MakeSpec(int dtype_number, std::span<const int64_t> dims, std::string_view field) {
  const auto dtype = DTypeFromNumber(dtype_number);
  if (!dtype)
    return BadValue(std::string(field) + ".dtype", std::to_string(dtype_number),
                    "a tilewire.v1.DType, 1 to 15");
  return MakeSpec(*dtype, dims, field);
}

Result<ArraySpec> MakeSpec(DType dtype, std::span<const int64_t> dims, std::string_view field) {
  TILEWIRE_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims, std::string(field) + ".shape"));
  if (shape.elements() > kMaxArrayBytes / SizeOf(dtype))
    return BadValue(std::string(field) + ".shape", shape.ToString(), "at most 2^60 bytes");
  return ArraySpec{dtype, shape};
}

Result<std::vector<int>> NormalizeAxes(std::span<const int32_t> axes, int rank, std::string_view field) {
  std::vector<int> out;
  uint32_t seen = 0;
  for (const int32_t axis : axes) {
    if (axis < -rank || axis >= rank)
      return BadValue(
          field, std::to_string(axis),
          rank == 0 ? "none for a 0-d array" : std::to_string(-rank) + " to " + std::to_string(rank - 1));
    const int a = axis < 0 ? axis + rank : axis;
    if (seen >> a & 1) return BadValue(field, std::to_string(axis) + " twice", "each axis once");
    seen |= 1u << a;
    out.push_back(a);
  }
  return out;
}

}  // namespace tilewire

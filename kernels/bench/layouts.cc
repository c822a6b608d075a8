#include "kernels/bench/layouts.h"

#include <utility>

#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

constexpr int64_t kBytes = int64_t{1} << 29;  ///< of an operand, about

/// 0 in `dims` stands for the extent that makes the operand about kBytes, a multiple of `multiple` plus
/// `more`.
struct Layout {
  const char* kind;
  DType dtype;
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;
  int64_t multiple = 1, more = 0;
};

void Add(const Layout& layout, std::vector<RmseLayout>* layouts) {
  std::vector<int64_t> shape = layout.dims;
  int64_t known = SizeOf(layout.dtype);
  for (const int64_t dim : shape) known *= dim > 0 ? dim : 1;
  for (int64_t& dim : shape)
    if (dim == 0) dim = kBytes / known / layout.multiple * layout.multiple + layout.more;
  layouts->push_back({layout.kind, layout.dtype, std::move(shape), layout.axes});
}

void AddOneSegment(std::vector<RmseLayout>* layouts) {
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) Add({"one", info.dtype, {(int64_t{1} << 30) / info.size}, {}}, layouts);
}

void AddSegments(std::vector<RmseLayout>* layouts) {
  for (const int64_t n : {2, 3, 7, 15, 16, 31, 33, 50, 100, 257, 300, 1000, 4097, 65536})
    Add({"segments", DType::kF32, {0, n}, {1}}, layouts);
  for (const int64_t n : {3, 15, 16, 50, 100, 500, 1001}) Add({"segments", DType::kU8, {0, n}, {1}}, layouts);
  for (const int64_t n : {3,   15,  16,  24,  31,  40,  48,  50,  56,  72,  80,  88,  96,
                          100, 104, 120, 136, 160, 192, 200, 224, 248, 257, 300, 500, 1000})
    Add({"segments", DType::kF16, {0, n}, {1}}, layouts);
  for (const int64_t n : {257, 500}) Add({"segments", DType::kU16, {0, n}, {1}}, layouts);
  for (const int64_t n : {3, 17, 129, 1000}) Add({"segments", DType::kF64, {0, n}, {1}}, layouts);
}

void AddColumns(std::vector<RmseLayout>* layouts) {
  for (const int64_t width : {3, 16, 17, 33, 50, 64, 99, 250, 1000, 1001, 4096})
    Add({"columns", DType::kF32, {0, width}, {0}}, layouts);
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF64})
    for (const int64_t width : {3, 16, 33, 64, 1000, 1001}) Add({"columns", dtype, {0, width}, {0}}, layouts);
}

/// Rows whose columns start at multiples of 16 elements, and rows that start anywhere.
void AddFewRows(std::vector<RmseLayout>* layouts) {
  for (const int64_t rows : {2, 4, 5, 17, 64, 128, 300})
    Add({"rows", DType::kF32, {rows, 0}, {0}, 16}, layouts);
  Add({"rows", DType::kF32, {64, 2000001}, {0}}, layouts);
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF64})
    for (const int64_t rows : {4, 64})
      for (const int64_t more : {0, 1}) Add({"rows", dtype, {rows, 0}, {0}, 16, more}, layouts);
}

void AddMiddle(std::vector<RmseLayout>* layouts) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kU8}) {
    for (const int64_t rows : {32 * 32, 224 * 224})
      Add({"middle", dtype, {0, rows, 3}, {1}}, layouts);  // RGB
    for (const auto& [rows, width] :
         {std::pair<int64_t, int64_t>{10, 100}, {16, 64}, {100, 100}, {1000, 1000}})
      Add({"middle", dtype, {0, rows, width}, {1}}, layouts);
    Add({"middle", dtype, {16, 4096, 1024}, {1}}, layouts);
  }
}

void AddRuns(std::vector<RmseLayout>* layouts) {
  const std::vector<std::vector<int64_t>> shapes = {
      {512, 512, 512}, {64, 40000, 32}, {1000, 10000, 8}, {1000, 10000, 3}};
  for (const auto& shape : shapes) Add({"runs", DType::kF32, shape, {0, 2}}, layouts);
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    Add({"runs", dtype, {64, 64, 64, 64}, {1, 3}}, layouts);
    Add({"runs", dtype, {64, 64, 64, 64}, {0, 2}}, layouts);
    Add({"runs", dtype, {50, 60, 70, 80}, {0, 2}}, layouts);
  }
}

void AddSmall(std::vector<RmseLayout>* layouts) {
  for (const int64_t n : {1 << 10, 1 << 16, 1 << 20, 1 << 24}) Add({"small", DType::kF32, {n}, {}}, layouts);
  Add({"small", DType::kF32, {2048, 2048}, {}}, layouts);
  for (const int32_t axis : {0, 1}) Add({"small", DType::kF32, {2048, 2048}, {axis}}, layouts);
  Add({"small", DType::kF32, {1000, 1000}, {0}}, layouts);
  Add({"small", DType::kF32, {1000000, 16}, {1}}, layouts);
  Add({"small", DType::kF32, {1024, 1024, 16}, {0, 1}}, layouts);
}

}  // namespace

std::string RmseLayout::name() const {
  std::string text = kind + '/' + std::string(Name(dtype)) + ' ' + FormatShape(shape);
  for (size_t i = 0; i < axes.size(); ++i) text += (i == 0 ? " over " : " ") + std::to_string(axes[i]);
  return text;
}

std::vector<RmseLayout> RmseLayouts() {
  std::vector<RmseLayout> layouts;
  AddOneSegment(&layouts);
  AddSegments(&layouts);
  AddColumns(&layouts);
  AddFewRows(&layouts);
  AddMiddle(&layouts);
  AddRuns(&layouts);
  AddSmall(&layouts);
  return layouts;
}

}  // namespace tilewire::bench

// Matrices of every element size, odd ones, and permutations that people meet; cuBLAS beside us where it can.
#include "kernels/bench/geam.h"
#include "kernels/bench/move_work.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

/// Loaded when the first case of it is prepared; the library lives as long as a case does.
MoveKernel GeamKernel(DType dtype, int64_t rows, int64_t columns, const std::shared_ptr<Geam>& geam) {
  MoveKernel kernel;
  kernel.implementation = "cublas geam";
  kernel.run = [=](const MoveData& data, Stream stream) {
    return geam->Transpose(dtype, data.in.data(), data.out.data(), rows, columns, stream);
  };
  return kernel;
}

Case GeamCase(const std::string& name, DType dtype, int64_t rows, int64_t columns, const std::string& path) {
  MoveKernel only_named;
  only_named.implementation = "cublas geam";
  Case one = MoveCase("transpose", name, dtype, {rows, columns}, {1, 0}, only_named);
  one.prepare = [=](Stream stream) -> Result<std::unique_ptr<Work>> {
    TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Geam> geam, Geam::Load(path));
    const MoveKernel kernel = GeamKernel(dtype, rows, columns, geam);
    return MoveCase("transpose", name, dtype, {rows, columns}, {1, 0}, kernel).prepare(stream);
  };
  return one;
}

void AddMatrix(DType dtype, int64_t rows, int64_t columns, const CaseOptions& options,
               std::vector<Case>* cases) {
  const std::vector<int64_t> shape = {rows, columns};
  const std::string name = std::string(Name(dtype)) + '/' + FormatShape(shape);
  cases->push_back(MoveCase("transpose", name, dtype, shape, {1, 0}, OurMove(dtype, shape, {1, 0})));
  if (Geam::Knows(dtype)) cases->push_back(GeamCase(name, dtype, rows, columns, options.cublas));
}

void AddNamed(const std::string& what, DType dtype, const std::vector<int64_t>& shape,
              const std::vector<int32_t>& axes, std::vector<Case>* cases) {
  std::string name = std::string(Name(dtype)) + '/' + FormatShape(shape) + " by ";
  for (const int32_t axis : axes) name += (axes.size() > 10 ? " " : "") + std::to_string(axis);
  MoveKernel kernel = OurMove(dtype, shape, axes);
  kernel.note = what;
  cases->push_back(MoveCase("transpose_nd", name, dtype, shape, axes, std::move(kernel)));
}

void AddNamedCases(std::vector<Case>* cases) {
  const std::vector<int64_t> field = {64, 100, 200, 300};
  AddNamed("middle axes swapped", DType::kF32, field, {0, 2, 1, 3}, cases);
  AddNamed("outer and inner swapped", DType::kF32, field, {3, 1, 2, 0}, cases);
  AddNamed("inner three reversed", DType::kF32, field, {0, 3, 2, 1}, cases);
  AddNamed("no axis where it was", DType::kF32, field, {2, 0, 3, 1}, cases);
  constexpr int64_t kMany = int64_t{1} << 26;
  AddNamed("records to planes", DType::kF32, {kMany, 3}, {1, 0}, cases);
  AddNamed("planes to records", DType::kF32, {3, kMany}, {1, 0}, cases);
  AddNamed("records of bytes to planes", DType::kU8, {2 * kMany, 3}, {1, 0}, cases);
  AddNamed("images, channels last to first", DType::kU8, {64, 1024, 1024, 3}, {0, 3, 1, 2}, cases);
  AddNamed("images, channels first to last", DType::kU8, {64, 3, 1024, 1024}, {0, 2, 3, 1}, cases);
  AddNamed("attention heads", DType::kF16, {64, 512, 16, 64}, {0, 2, 1, 3}, cases);
  AddNamed("a batch of small matrices", DType::kF32, {65536, 32, 32}, {0, 2, 1}, cases);
  AddNamed("short odd axes reversed", DType::kF32, {512, 31, 549, 2, 3}, {4, 3, 2, 1, 0}, cases);
  AddNamed("rows of 1001 bytes", DType::kU8, {512, 512, 1001}, {1, 0, 2}, cases);
  std::vector<int64_t> bits(16, 3);
  std::vector<int32_t> reversed(16);
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = static_cast<int32_t>(15 - i);
  AddNamed("sixteen axes of three reversed", DType::kF32, bits, reversed, cases);
}

}  // namespace

void AddTransposeCases(const CaseOptions& options, std::vector<Case>* cases) {
  for (const DType dtype : {DType::kU8, DType::kU16, DType::kF32, DType::kF64, DType::kC128}) {
    AddMatrix(dtype, 16384, 16384, options, cases);
  }
  AddMatrix(DType::kF32, 2048, 2048, options, cases);
  AddMatrix(DType::kF32, 4096, 65536, options, cases);
  AddMatrix(DType::kF32, 16381, 16411, options, cases);
  AddMatrix(DType::kF64, 8191, 8193, options, cases);
  AddMatrix(DType::kC128, 8191, 8193, options, cases);
  AddMatrix(DType::kU8, 32749, 32771, options, cases);
  AddMatrix(DType::kU16, 16381, 16411, options, cases);
  AddMatrix(DType::kU8, 32748, 32772, options, cases);
  AddMatrix(DType::kU16, 16382, 16410, options, cases);
  AddNamedCases(cases);
}

}  // namespace tilewire::bench

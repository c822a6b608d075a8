// Samples of every operation and the bytes that an independent reference gives for them: the conformance test
// runs over them. An operation adds a row here.
#include "tests/integration/operations.h"

#include "tests/unit/compare_reference.h"

namespace tilewire::testing {
namespace {

v1::ArraySpec SpecOf(v1::DType dtype, const std::vector<int64_t>& shape) {
  v1::ArraySpec spec;
  SetSpec(&spec, dtype, shape);
  return spec;
}

/// Random bytes; floats are finite, 0 to 2, so that sums tell one element from another.
std::string ValuesOf(const v1::ArraySpec& proto, uint64_t seed) {
  const ArraySpec spec = FromProto(proto);
  std::string bytes = Bytes(static_cast<size_t>(spec.bytes()), seed);
  const auto size = static_cast<size_t>(SizeOf(spec.dtype));
  if (spec.dtype == DType::kF32 || spec.dtype == DType::kF64)
    for (size_t at = size - 1; at < bytes.size(); at += size) bytes[at] = 0x3f;
  return bytes;
}

Sample RmseSample(v1::DType dtype, const std::vector<int64_t>& shape, const std::vector<int>& axes) {
  Sample sample{.specs{2, SpecOf(dtype, shape)}};
  auto* const op = sample.operation.mutable_rmse();
  for (const int axis : axes) op->add_axes(axis);
  for (uint64_t i = 0; i < 2; ++i) sample.operands.push_back(ValuesOf(sample.specs[i], i + 1));
  sample.results = {HostRmse(sample.operands[0], sample.operands[1], static_cast<DType>(dtype), shape, axes)};
  return sample;
}

Sample TransposeSample(v1::DType dtype, const std::vector<int64_t>& shape, const std::vector<int>& axes) {
  Sample sample{.specs{SpecOf(dtype, shape)}};
  auto* const op = sample.operation.mutable_transpose();
  for (const int axis : axes) op->add_axes(axis);
  sample.operands = {ValuesOf(sample.specs[0], 3)};
  sample.results = {HostTranspose(sample.operands[0], static_cast<DType>(dtype), shape, axes)};
  return sample;
}

Sample GaussianSample(v1::DType dtype, const std::vector<int64_t>& shape, double mean, double stddev) {
  Sample sample{.specs{SpecOf(dtype, shape)}};
  sample.operation.mutable_gaussian_pdf()->set_mean(mean);
  sample.operation.mutable_gaussian_pdf()->set_stddev(stddev);
  sample.operands = {ValuesOf(sample.specs[0], 4)};
  sample.results = {HostGaussian(sample.operands[0], static_cast<DType>(dtype), shape, mean, stddev)};
  return sample;
}

Sample CompareSample(v1::DType dtype, const std::vector<int64_t>& shape, const std::vector<int>& axes,
                     const std::vector<int>& metrics = {}) {
  Sample sample{.specs{2, SpecOf(dtype, shape)}};
  auto* const op = sample.operation.mutable_compare();
  for (const int axis : axes) op->add_axes(axis);
  for (const int metric : metrics) op->add_metrics(static_cast<v1::CompareMetric>(metric));
  for (uint64_t i = 0; i < 2; ++i) sample.operands.push_back(ValuesOf(sample.specs[i], i + 5));
  std::vector<compare::reference::Bytes> operands;
  for (const std::string& operand : sample.operands) operands.emplace_back(operand.begin(), operand.end());
  const auto results =
      compare::reference::Results(FromProto(sample.specs[0]), {axes.begin(), axes.end()},
                                  {metrics.begin(), metrics.end()}, operands[0], operands[1]);
  for (const auto& result : results) sample.results.emplace_back(result.begin(), result.end());
  return sample;
}

/// Some 10 MB an operand, in few elements: more ranges than the budget of the windowed test has room for.
const std::vector<int64_t> kManyBlocks{1300, 1000};

/// One row an operation.
const Row kRows[] = {
    {"rmse",
     [] {
       return std::vector{RmseSample(v1::DTYPE_F32, {37, 111}, {}), RmseSample(v1::DTYPE_F32, {37, 111}, {0}),
                          RmseSample(v1::DTYPE_U8, {801, 333}, {1}),
                          RmseSample(v1::DTYPE_F64, {901, 99}, {})};
     },
     [] { return RmseSample(v1::DTYPE_F64, kManyBlocks, {}); }},
    {"transpose",
     [] {
       return std::vector{TransposeSample(v1::DTYPE_F32, {37, 111}, {}),
                          TransposeSample(v1::DTYPE_I16, {20, 61, 99}, {0, 2, 1}),
                          TransposeSample(v1::DTYPE_U8, {999, 333}, {1, 0})};
     },
     nullptr},
    {"gaussian_pdf",
     [] {
       return std::vector{GaussianSample(v1::DTYPE_F32, {37, 111}, 0.5, 0.25),
                          GaussianSample(v1::DTYPE_F64, {30, 1200}, -1, 3)};
     },
     [] { return GaussianSample(v1::DTYPE_F64, kManyBlocks, 0, 1); }},
    {"compare",
     [] {
       return std::vector{CompareSample(v1::DTYPE_F32, {37, 111}, {}),
                          CompareSample(v1::DTYPE_F32, {37, 111}, {0}),
                          CompareSample(v1::DTYPE_U8, {801, 333}, {1}, {8, 7, 10}),
                          CompareSample(v1::DTYPE_F64, {901, 99}, {}, {3})};
     },
     [] { return CompareSample(v1::DTYPE_F64, kManyBlocks, {}); }},
};

}  // namespace

std::span<const Row> Rows() {
  return kRows;
}

}  // namespace tilewire::testing

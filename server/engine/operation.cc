#include "server/engine/operation.h"

#include <utility>

namespace tilewire::engine {
namespace {

class RmseOperation : public Operation {
 public:
  explicit RmseOperation(rmse::Plan plan)
      : plan_(std::move(plan)), operands_{plan_.operand(), plan_.operand()} {}

  std::string_view name() const override { return "rmse"; }
  std::string_view numeric_version() const override { return rmse::kNumericVersion; }
  std::span<const ArraySpec> operands() const override { return operands_; }
  const ArraySpec& result() const override { return plan_.result(); }
  int64_t scratch_bytes() const override { return plan_.scratch_bytes(); }
  int64_t range_count() const override { return plan_.range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const rmse::Range range = plan_.range(index);
    return {range.byte_begin, range.byte_end};
  }
  Work range_work(int64_t index, const Buffers& buffers) const override {
    const std::byte *a = buffers.operands[0], *b = buffers.operands[1];
    if (range_count() == 1) return RmseWhole{&plan_, a, b, TileSums(buffers), Values(buffers)};
    return RmseRange{&plan_, plan_.range(index), a, b, TileSums(buffers)};
  }
  std::optional<Work> finish_work(const Buffers& buffers) const override {
    if (range_count() == 1) return std::nullopt;
    return RmseFinish{&plan_, TileSums(buffers), Values(buffers)};
  }
  bool ranges_fill_result() const override { return false; }

 private:
  static double* TileSums(const Buffers& buffers) { return reinterpret_cast<double*>(buffers.scratch); }
  static double* Values(const Buffers& buffers) { return reinterpret_cast<double*>(buffers.result); }
  rmse::Plan plan_;
  ArraySpec operands_[2];
};

class TransposeOperation : public Operation {
 public:
  explicit TransposeOperation(transpose::Plan plan) : plan_(std::move(plan)) {}

  std::string_view name() const override { return "transpose"; }
  std::string_view numeric_version() const override { return transpose::kNumericVersion; }
  std::span<const ArraySpec> operands() const override { return {&plan_.input(), 1}; }
  const ArraySpec& result() const override { return plan_.result(); }
  int64_t scratch_bytes() const override { return 0; }
  int64_t range_count() const override { return plan_.range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const transpose::Range range = plan_.range(index);
    return {range.byte_begin, range.byte_end};
  }
  Work range_work(int64_t index, const Buffers& buffers) const override {
    return TransposeRange{&plan_, plan_.range(index), buffers.operands[0], buffers.result};
  }
  std::optional<Work> finish_work(const Buffers&) const override { return std::nullopt; }
  bool ranges_fill_result() const override { return plan_.keeps_leading_axis(); }

 private:
  transpose::Plan plan_;
};

class GaussianOperation : public Operation {
 public:
  explicit GaussianOperation(gaussian::Plan plan) : plan_(std::move(plan)) {}

  std::string_view name() const override { return "gaussian_pdf"; }
  std::string_view numeric_version() const override { return gaussian::kNumericVersion; }
  std::span<const ArraySpec> operands() const override { return {&plan_.input(), 1}; }
  const ArraySpec& result() const override { return plan_.result(); }
  int64_t scratch_bytes() const override { return 0; }
  int64_t range_count() const override { return plan_.range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const gaussian::Range range = plan_.range(index);
    const int64_t size = SizeOf(plan_.input().dtype);
    return {range.begin * size, range.end * size};
  }
  Work range_work(int64_t index, const Buffers& buffers) const override {
    return GaussianRange{&plan_, plan_.range(index), buffers.operands[0], buffers.result};
  }
  std::optional<Work> finish_work(const Buffers&) const override { return std::nullopt; }
  // Element by element: what has arrived can be computed and sent back while the rest is on its way.
  bool ranges_fill_result() const override { return true; }

 private:
  gaussian::Plan plan_;
};

}  // namespace

std::unique_ptr<Operation> MakeRmse(rmse::Plan plan) {
  return std::make_unique<RmseOperation>(std::move(plan));
}

std::unique_ptr<Operation> MakeTranspose(transpose::Plan plan) {
  return std::make_unique<TransposeOperation>(std::move(plan));
}

std::unique_ptr<Operation> MakeGaussian(gaussian::Plan plan) {
  return std::make_unique<GaussianOperation>(std::move(plan));
}

}  // namespace tilewire::engine

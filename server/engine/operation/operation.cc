#include "server/engine/operation/operation.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace tilewire::engine {
namespace {

using WindowedResult = Result<std::unique_ptr<Operation>>;

WindowedResult NotWindowed(const std::string& why) {
  return Fail(Status(Code::kFailedPrecondition, "", why));
}

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
  std::unique_ptr<Operation> Whole() const override;
  WindowedResult Windowed() const override;

 protected:
  static double* TileSums(const Buffers& buffers) { return reinterpret_cast<double*>(buffers.scratch); }
  static double* Values(const Buffers& buffers) { return reinterpret_cast<double*>(buffers.result); }
  const rmse::Plan plan_;

 private:
  ArraySpec operands_[2];
};

class WholeRmse final : public RmseOperation {
 public:
  using RmseOperation::RmseOperation;
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, plan_.operand().bytes()}; }
};

std::unique_ptr<Operation> RmseOperation::Whole() const {
  return std::make_unique<WholeRmse>(plan_);
}

/// Each range is an RMSE of its own up to the tile sums: ranges begin at tiles, so the sums are the same
/// bits. They go to their places among the sums of all, which are finished as ever.
class WindowedRmse final : public RmseOperation {
 public:
  /// `parts`: a plan for every length that ranges have.
  WindowedRmse(const rmse::Plan& plan, std::vector<rmse::Plan> parts)
      : RmseOperation(plan), parts_(std::move(parts)) {}
  Work range_work(int64_t index, const Buffers& buffers) const override {
    const rmse::Range range = plan_.range(index);
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&range](const rmse::Plan& plan) {
      return plan.operand().bytes() == range.byte_end - range.byte_begin;
    });
    double* sums = TileSums(buffers) + range.segment_begin * plan_.layout().tiles + range.tile_begin;
    return RmseRange{&*part, part->whole(), buffers.operands[0], buffers.operands[1], sums};
  }

 private:
  std::vector<rmse::Plan> parts_;
};

/// The RMSE of one range: whole slabs along the leading axis, or, where a segment is cut, a run of its
/// elements.
rmse::Plan PartOf(const rmse::Plan& plan, const rmse::Range& range) {
  const rmse::Layout& layout = plan.layout();
  const int64_t elements = (range.byte_end - range.byte_begin) / SizeOf(plan.operand().dtype);
  std::vector<int64_t> dims{elements};
  std::vector<int32_t> axes;
  if (range.tile_end - range.tile_begin < layout.tiles) {
    axes.push_back(0);
  } else {
    for (int axis = 1; axis < layout.rank; ++axis) {
      dims[0] /= layout.dims[axis];
      dims.push_back(layout.dims[axis]);
      if (layout.reduced[axis]) axes.push_back(axis);
    }
    if (axes.empty()) {  // segments of one element; no axes at all would mean every axis
      dims.push_back(1);
      axes.push_back(1);
    }
  }
  return rmse::Plan::Make(MakeSpec(plan.operand().dtype, dims).value(), axes, plan.output()).value();
}

WindowedResult RmseOperation::Windowed() const {
  const rmse::Layout& layout = plan_.layout();
  const rmse::Range first = plan_.range(0);
  const int64_t cuts = (layout.tiles - 1) / first.tile_end + 1;  // ranges of a segment
  if (cuts > 1 && (layout.rank > 2 || !layout.reduced[layout.rank - 1]))
    return NotWindowed(
        "values of this RMSE are over bytes that lie too far apart; the reduced axes must be the last ones");
  if (range_count() == 1)
    return NotWindowed("this RMSE cannot be cut into parts that come one after the other");
  // All ranges of a segment, and all segments, are alike but for the last.
  std::vector<rmse::Plan> parts;
  for (const int64_t index : {int64_t{0}, cuts - 1, range_count() - 1})
    parts.push_back(PartOf(plan_, plan_.range(index)));
  return std::make_unique<WindowedRmse>(plan_, std::move(parts));
}

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
  std::unique_ptr<Operation> Whole() const override;

 protected:
  const transpose::Plan plan_;
};

class WholeTranspose final : public TransposeOperation {
 public:
  using TransposeOperation::TransposeOperation;
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, plan_.input().bytes()}; }
  Work range_work(int64_t, const Buffers& buffers) const override {
    return TransposeRange{&plan_, plan_.whole(), buffers.operands[0], buffers.result};
  }
};

std::unique_ptr<Operation> TransposeOperation::Whole() const {
  return std::make_unique<WholeTranspose>(plan_);
}

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
  std::unique_ptr<Operation> Whole() const override;
  WindowedResult Windowed() const override;

 protected:
  const gaussian::Plan plan_;
};

class WholeGaussian final : public GaussianOperation {
 public:
  using GaussianOperation::GaussianOperation;
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, plan_.input().bytes()}; }
  Work range_work(int64_t, const Buffers& buffers) const override {
    return GaussianRange{&plan_, plan_.whole(), buffers.operands[0], buffers.result};
  }
};

std::unique_ptr<Operation> GaussianOperation::Whole() const {
  return std::make_unique<WholeGaussian>(plan_);
}

/// Each range is a gaussian pdf of its own.
class WindowedGaussian final : public GaussianOperation {
 public:
  explicit WindowedGaussian(const gaussian::Plan& plan)
      : GaussianOperation(plan), part_(PartOf(0)), last_(PartOf(range_count() - 1)) {}
  Work range_work(int64_t index, const Buffers& buffers) const override {
    const gaussian::Plan& part = index + 1 < range_count() ? part_ : last_;
    return GaussianRange{&part, part.whole(), buffers.operands[0], buffers.result};
  }

 private:
  gaussian::Plan PartOf(int64_t index) const {
    const gaussian::Range range = plan_.range(index);
    const ArraySpec spec = MakeSpec(plan_.input().dtype, std::array{range.end - range.begin}).value();
    return gaussian::Plan::Make(spec, plan_.mean(), plan_.stddev()).value();
  }
  gaussian::Plan part_, last_;
};

WindowedResult GaussianOperation::Windowed() const {
  if (range_count() == 1) return NotWindowed("so few elements are one part");
  return std::make_unique<WindowedGaussian>(plan_);
}

class Pass final : public Operation {
 public:
  Pass(const ArraySpec& spec, std::string_view name, std::string_view version)
      : spec_(spec), name_(name), version_(version) {}
  std::string_view name() const override { return name_; }
  std::string_view numeric_version() const override { return version_; }
  std::span<const ArraySpec> operands() const override { return {&spec_, 1}; }
  const ArraySpec& result() const override { return spec_; }
  int64_t scratch_bytes() const override { return 0; }
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, spec_.bytes()}; }
  Work range_work(int64_t, const Buffers&) const override { return {}; }
  std::optional<Work> finish_work(const Buffers&) const override { return std::nullopt; }
  bool ranges_fill_result() const override { return true; }
  bool result_is_operand() const override { return true; }

 private:
  const ArraySpec spec_;
  const std::string_view name_, version_;
};

}  // namespace

WindowedResult Operation::Windowed() const {
  return NotWindowed("a " + std::string(name()) + " needs all of its input at once");
}

std::unique_ptr<Operation> MakeRmse(rmse::Plan plan) {
  return std::make_unique<RmseOperation>(std::move(plan));
}

std::unique_ptr<Operation> MakeTranspose(transpose::Plan plan) {
  return std::make_unique<TransposeOperation>(std::move(plan));
}

std::unique_ptr<Operation> MakeGaussian(gaussian::Plan plan) {
  return std::make_unique<GaussianOperation>(std::move(plan));
}

std::unique_ptr<Operation> MakePass(const ArraySpec& spec, std::string_view name, std::string_view version) {
  return std::make_unique<Pass>(spec, name, version);
}

}  // namespace tilewire::engine

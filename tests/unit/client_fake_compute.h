// What the fake server computes and checks: results by the host kernels, and the rule of runs.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/gaussian/gaussian.h"
#include "kernels/rmse/rmse.h"
#include "kernels/transpose/transpose.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::client::testing {

inline Result<ArraySpec> ReadSpec(const v1::ArraySpec& spec) {
  const std::vector<int64_t> dims(spec.shape().begin(), spec.shape().end());
  return MakeSpec(static_cast<int>(spec.dtype()), dims);
}

inline void WriteSpec(const ArraySpec& spec, v1::ArraySpec* out) {
  out->set_dtype(static_cast<v1::DType>(spec.dtype));
  for (const int64_t dim : spec.shape.dims()) out->add_shape(dim);
}

struct Computed {
  ArraySpec spec;
  std::string bytes, version;
};

inline Result<Computed> ComputeRmse(const v1::RmseOp& op, const ArraySpec& spec, const std::string& a,
                                    const std::string& b) {
  if (a.size() != b.size()) return BadValue("b.shape", "another", spec.shape.ToString() + ", as a");
  const std::vector<int32_t> axes(op.axes().begin(), op.axes().end());
  TILEWIRE_ASSIGN_OR_RETURN(const rmse::Plan plan,
                            rmse::Plan::Make(spec, axes, static_cast<rmse::Output>(op.output())));
  std::vector<double> sums(static_cast<size_t>(plan.scratch_bytes() / 8));
  for (int64_t i = 0; i < plan.range_count(); ++i) {
    const auto range = plan.range(i);
    rmse::HostRange(plan, range, 0, range.items(), a.data(), b.data(), sums.data());
  }
  std::vector<double> result(static_cast<size_t>(plan.layout().segments));
  rmse::HostFinish(plan, 0, plan.layout().segments, sums.data(), result.data());
  return Computed{plan.result(), std::string(reinterpret_cast<const char*>(result.data()), result.size() * 8),
                  std::string(rmse::kNumericVersion)};
}

inline Result<Computed> ComputeTranspose(const v1::TransposeOp& op, const ArraySpec& spec,
                                         const std::string& in) {
  const std::vector<int32_t> axes(op.axes().begin(), op.axes().end());
  TILEWIRE_ASSIGN_OR_RETURN(const transpose::Plan plan, transpose::Plan::Make(spec, axes));
  std::string out(in.size(), '\0');
  for (int64_t i = 0; i < plan.range_count(); ++i) {
    const auto range = plan.range(i);
    transpose::HostRange(plan, range, 0, transpose::HostItems(plan, range), in.data(), out.data());
  }
  return Computed{plan.result(), std::move(out), std::string(transpose::kNumericVersion)};
}

inline Result<Computed> ComputeGaussian(const v1::GaussianOp& op, const ArraySpec& spec,
                                        const std::string& in) {
  TILEWIRE_ASSIGN_OR_RETURN(const gaussian::Plan plan, gaussian::Plan::Make(spec, op.mean(), op.stddev()));
  std::string out(in.size(), '\0');
  const gaussian::Range whole = plan.whole();
  gaussian::HostRange(plan, whole, 0, gaussian::HostItems(plan, whole), in.data(), out.data());
  return Computed{plan.result(), std::move(out), std::string(gaussian::kNumericVersion)};
}

inline void FillTiming(v1::Timing* timing, uint64_t in, uint64_t out) {
  timing->set_queue_us(1.5);
  timing->set_kernel_us(20);
  timing->set_other_us(12.5);
  timing->set_wall_us(100);
  timing->set_bytes_in(in);
  timing->set_bytes_out(out);
  timing->set_bytes_copied(in + out + out / 2);
  timing->set_device("cpu");
  timing->set_bottleneck("kernel");
  timing->set_bottleneck_share(0.97);
}

/// Collects one operand and knows the rule of runs. A resident one is there already.
class Operand {
 public:
  Operand(uint64_t bytes, uint64_t block) : data_(bytes, '\0'), block_(block) {}
  explicit Operand(std::string resident)
      : data_(std::move(resident)), block_(1), run_end_(data_.size()), count_(data_.size()) {
    taken_[0] = count_;
  }

  /// The complaint, or nothing.
  std::string Take(uint64_t offset, const std::string& data) {
    const uint64_t end = offset + data.size();
    if (data.empty()) return "an empty chunk";
    if (end > data_.size()) return "a chunk beyond the end";
    const bool continues = offset == run_end_;
    const bool may_start = offset % block_ == 0 && (run_end_ % block_ == 0 || run_end_ == data_.size());
    if (!continues && !may_start) return "a broken run at " + std::to_string(offset);
    const auto next = taken_.lower_bound(offset);
    if ((next != taken_.end() && next->first < end) ||
        (next != taken_.begin() && std::prev(next)->second > offset))
      return "repeated bytes at " + std::to_string(offset);
    taken_[offset] = end;
    run_end_ = end;
    count_ += data.size();
    data_.replace(offset, data.size(), data);
    return "";
  }
  bool complete() const { return count_ == data_.size(); }
  /// The lowest byte that has not come; a very high one when all have.
  uint64_t missing() const {
    uint64_t next = 0;
    for (const auto& [begin, end] : taken_) {
      if (begin != next) break;
      next = end;
    }
    return next == data_.size() ? UINT64_MAX : next;
  }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
  uint64_t block_, run_end_ = 0, count_ = 0;
  std::map<uint64_t, uint64_t> taken_;
};

/// Takes a chunk that may end `window` bytes (0: any number) beyond the lowest byte that has not come. The
/// complaint, or nothing.
inline std::string TakeWithin(uint64_t window, const v1::Chunk& chunk, std::vector<Operand>* operands) {
  uint64_t lowest = UINT64_MAX;
  for (const Operand& operand : *operands) lowest = std::min(lowest, operand.missing());
  const uint64_t end = chunk.offset() + chunk.data().size();
  if (window > 0 && end > lowest && end - lowest > window) return "a chunk beyond the window";
  return (*operands)[chunk.operand()].Take(chunk.offset(), chunk.data());
}

}  // namespace tilewire::client::testing

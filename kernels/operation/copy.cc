#include "kernels/operation/copy.h"

#include <cstring>

#include "kernels/operation/descriptor.h"

namespace tilewire {
namespace {

class CopyProblem final : public Problem {
 public:
  explicit CopyProblem(const ArraySpec& spec) : Problem(&kCopyDescriptor), spec_(spec) {}
  std::span<const ArraySpec> operands() const override { return {&spec_, 1}; }
  std::span<const ArraySpec> results() const override { return {&spec_, 1}; }
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, spec_.bytes()}; }
  bool ranges_fill_result() const override { return true; }
  void RunHost(Step, const Buffers& buffers, Team& team) const override {
    team.For(spec_.bytes(), GrainOf(1), [&buffers](int64_t begin, int64_t end) {
      std::memcpy(buffers.results[0] + begin, buffers.operands[0] + begin, static_cast<size_t>(end - begin));
    });
  }

 private:
  const ArraySpec spec_;
};

constexpr std::string_view kOperands[] = {"input"};

}  // namespace

constinit const Descriptor kCopyDescriptor = {
    .name = "copy",
    .numeric_version = "copy.1",
    .operands = kOperands,
    .accepts = [](DType) { return true; },
    .attributes = {},
    .make = [](std::span<const ArraySpec> operands, const Attributes&) -> Result<std::unique_ptr<Problem>> {
      return MakeCopy(operands[0]);
    },
    .examples = [] { return std::vector<Example>(); }};

std::unique_ptr<Problem> MakeCopy(const ArraySpec& spec) {
  return std::make_unique<CopyProblem>(spec);
}

}  // namespace tilewire

// Transposes of the CPU device, against memcpy on as many threads.
#include "kernels/bench/host_work.h"
#include "kernels/transpose/transpose.h"

namespace tilewire::bench {
namespace {

class TransposeWork final : public Work {
 public:
  TransposeWork(transpose::Plan plan, std::vector<int32_t> axes, int threads)
      : plan_(std::move(plan)),
        axes_(std::move(axes)),
        team_(threads),
        in_(plan_.input().bytes()),
        out_(plan_.input().bytes()) {
    FillHost(team_, DType::kU64, 1, in_);
  }

  /// A million elements at random places, which the shapes and the permutation alone name.
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    const Shape& from = plan_.input().shape;
    const Shape& to = plan_.result().shape;
    const int64_t size = SizeOf(plan_.input().dtype);
    for (uint64_t i = 0; i < 1'000'000; ++i) {
      int64_t rest = static_cast<int64_t>(Mix(i) % static_cast<uint64_t>(from.elements()));
      const int64_t target = rest;
      int64_t at[kMaxRank];  // in the output
      for (int axis = to.rank() - 1; axis >= 0; --axis) {
        at[axis] = rest % to.dim(axis);
        rest /= to.dim(axis);
      }
      int64_t source = 0;
      for (int axis = 0; axis < from.rank(); ++axis) {
        const auto where = std::find(axes_.begin(), axes_.end(), axis) - axes_.begin();
        source = source * from.dim(axis) + at[where];
      }
      if (std::memcmp(in_.data() + source * size, out_.data() + target * size, static_cast<size_t>(size)) !=
          0)
        return Fail(
            Status(Code::kInternal, "WRONG_RESULT", "element " + std::to_string(target) + " differs"));
    }
    return Check{.kind = Check::Kind::kExact};
  }

  Status Run(Stream) override {
    const transpose::Range whole = plan_.whole();
    const int64_t items = transpose::HostItems(plan_, whole);
    team_.Run([&](int thread) {
      const auto [begin, end] = Share(items, thread, team_.threads());
      transpose::HostRange(plan_, whole, begin, end, in_.data(), out_.data());
    });
    return {};
  }

 private:
  const transpose::Plan plan_;
  const std::vector<int32_t> axes_;
  HostTeam team_;
  HostBuffer in_, out_;
};

}  // namespace

void AddHostTransposeCases(int threads, std::vector<Case>* cases) {
  const struct {
    DType dtype;
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
  } all[] = {{DType::kU8, {16384, 32768}, {1, 0}},
             {DType::kU16, {16384, 16384}, {1, 0}},
             {DType::kF32, {8192, 16384}, {1, 0}},
             {DType::kF32, {8191, 16381}, {1, 0}},
             {DType::kF64, {8192, 8192}, {1, 0}},
             {DType::kC128, {4096, 8192}, {1, 0}},
             {DType::kF32, {640, 3, 256, 256}, {0, 2, 3, 1}},
             {DType::kF32, {640, 256, 256, 3}, {0, 3, 1, 2}},
             {DType::kF32, {64, 100, 100, 200}, {3, 1, 0, 2}},
             {DType::kF32, {1000, 1000, 128}, {1, 0, 2}}};
  for (const auto& one : all) {
    const ArraySpec spec = *MakeSpec(one.dtype, one.dims);
    const transpose::Plan plan = *transpose::Plan::Make(spec, one.axes);
    std::string name = std::string(Name(one.dtype)) + spec.shape.ToString() + " to";
    for (const int32_t axis : one.axes) name += " " + std::to_string(axis);
    Case made = HostCase("host_transpose", std::move(name), threads, spec);
    made.axes = one.axes;
    made.bytes = made.memory_bytes = 2 * spec.bytes();
    made.limit = HostCopyLimit(threads);
    made.prepare = [plan, axes = one.axes, threads](Stream) -> Result<std::unique_ptr<Work>> {
      return std::make_unique<TransposeWork>(plan, axes, threads);
    };
    cases->push_back(std::move(made));
  }
}

}  // namespace tilewire::bench

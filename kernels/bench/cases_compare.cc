// All metrics of two arrays in one pass beside their RMSE alone: one segment of every size that matters, and
// a layout of every kind. Bytes are those of the operands and of the results.
#include <cstring>
#include <memory>
#include <stdexcept>

#include "kernels/bench/data.h"
#include "kernels/bench/parallel.h"
#include "kernels/bench/rmse_data.h"
#include "kernels/compare/problem.h"
#include "kernels/compare/problem_cuda.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

/// All threads of the host, for checks.
class AllThreads final : public Team {
 public:
  int threads() const override { return 1; }

 private:
  void Share(int64_t items, int64_t, const Pieces& body) override { ParallelFor(items, body); }
};

class CompareWork final : public Work {
 public:
  CompareWork(std::shared_ptr<const Problem> problem, DeviceBuffer a, DeviceBuffer b, DeviceBuffer result,
              DeviceBuffer scratch)
      : problem_(std::move(problem)),
        a_(std::move(a)),
        b_(std::move(b)),
        result_(std::move(result)),
        scratch_(std::move(scratch)),
        buffers_{.operands = {a_.as<std::byte>(), b_.as<std::byte>()}, .scratch = scratch_.as<std::byte>()} {
    problem_->PlaceResults(result_.as<std::byte>(), &buffers_);
  }

  Status Run(Stream stream) override {
    return FromCuda(compare::kCuda.enqueue(*problem_, Step{0}, buffers_, stream), "comparing");
  }

  /// The host's bits, in every result.
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(FillRandomBytes(result_.data(), result_.bytes(), 11, stream));
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "running"));
    TILEWIRE_ASSIGN_OR_RETURN(const Memory a, FromDevice(a_));
    TILEWIRE_ASSIGN_OR_RETURN(const Memory b, FromDevice(b_));
    TILEWIRE_ASSIGN_OR_RETURN(const Memory got, FromDevice(result_));
    const Memory expected = Allocate(result_.bytes()), scratch = Allocate(scratch_.bytes());
    AllThreads team;
    Buffers buffers{.operands = {a.get(), b.get()}, .scratch = scratch.get()};
    problem_->PlaceResults(expected.get(), &buffers);
    problem_->RunHost({0}, buffers, team);
    for (size_t i = 0; i < problem_->results().size(); ++i) {
      const int64_t offset = problem_->result_offset(i);
      if (std::memcmp(got.get() + offset, expected.get() + offset,
                      static_cast<size_t>(problem_->results()[i].bytes())) != 0)
        return Fail(Status(Code::kInternal, "WRONG_RESULT",
                           "result " + std::to_string(i) + " is not what the host computes"));
    }
    return Check{Check::Kind::kExact};
  }

 private:
  using Memory = std::unique_ptr<std::byte[]>;
  static Memory Allocate(int64_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
  }
  static Result<Memory> FromDevice(const DeviceBuffer& from) {
    Memory to = Allocate(from.bytes());
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaMemcpy(to.get(), from.data(), static_cast<size_t>(from.bytes()), cudaMemcpyDeviceToHost),
                 "copying to the host"));
    return to;
  }

  const std::shared_ptr<const Problem> problem_;
  const DeviceBuffer a_, b_, result_, scratch_;
  Buffers buffers_;
};

Case CompareCase(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                 const std::vector<int32_t>& axes, const std::vector<int32_t>& metrics,
                 const std::string& implementation) {
  const ArraySpec spec = MakeSpec(dtype, shape).value();
  auto plan = compare::Plan::Make(spec, axes, metrics);
  if (!plan) throw std::invalid_argument(plan.error().ToString());
  const std::shared_ptr<const Problem> problem = compare::MakeProblem(*std::move(plan))->Whole();
  Case one;
  one.group = "compare";
  one.name = name;
  one.implementation = implementation;
  one.bytes = 2 * spec.bytes();
  for (const ArraySpec& each : problem->results()) one.bytes += each.bytes();
  one.memory_bytes = 2 * spec.bytes() + problem->result_bytes() + problem->scratch_bytes();
  one.limit = kReadLimit;
  one.dtype = Name(dtype);
  one.shape = shape;
  one.axes = axes;
  one.prepare = [problem](Stream stream) -> Result<std::unique_ptr<Work>> {
    const ArraySpec& operand = problem->operands()[0];
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer a, DeviceBuffer::Allocate(operand.bytes()));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer b, DeviceBuffer::Allocate(operand.bytes()));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer result,
                              DeviceBuffer::Allocate((problem->result_bytes() + 7) & ~7));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer scratch, DeviceBuffer::Allocate(problem->scratch_bytes()));
    TILEWIRE_RETURN_IF_ERROR(FillRandom(operand.dtype, a.data(), operand.shape.elements(), 7, stream));
    TILEWIRE_RETURN_IF_ERROR(FillRandom(operand.dtype, b.data(), operand.shape.elements(), 8, stream));
    return std::make_unique<CompareWork>(problem, std::move(a), std::move(b), std::move(result),
                                         std::move(scratch));
  };
  return one;
}

/// Everything, the sums alone, and what it is held against: the RMSE by its own kernels.
void Add(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
         const std::vector<int32_t>& axes, bool with_sums, std::vector<Case>* cases) {
  const RmseProblem rmse = MakeRmseProblem(dtype, shape, axes);
  RmseKernel kernel = OurRmseWhole(rmse.plan);
  kernel.implementation = "rmse alone";
  cases->push_back(RmseCase("compare", name, rmse, std::move(kernel)));
  cases->push_back(CompareCase(name, dtype, shape, axes, {}, "all metrics"));
  if (with_sums) cases->push_back(CompareCase(name, dtype, shape, axes, {0, 3, 5}, "sums"));
}

}  // namespace

void AddCompareCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const int64_t mib : {1, 16, 1024})
      Add(std::string(Name(dtype)) + "/" + FormatBytes(mib << 20), dtype, {(mib << 20) / SizeOf(dtype)}, {},
          mib == 1024, cases);
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kI32, DType::kU64, DType::kF16, DType::kBF16})
    Add(std::string(Name(dtype)) + "/256 MiB", dtype, {(int64_t{256} << 20) / SizeOf(dtype)}, {}, false,
        cases);
  const struct {
    std::string kind;
    std::vector<int64_t> shape;
    std::vector<int32_t> axes;
  } layouts[] = {{"segments", {1 << 22, 16}, {1}},
                 {"segments", {1 << 20, 100}, {1}},
                 {"segments", {1 << 17, 1000}, {1}},
                 {"segments", {1 << 13, 16384}, {1}},
                 {"columns", {1 << 25, 3}, {0}},
                 {"columns", {1 << 22, 16}, {0}},
                 {"columns", {1 << 17, 1000}, {0}},
                 {"columns", {1024, 1024, 16}, {0, 1}},
                 {"columns", {64, 1 << 20}, {0}},
                 {"middle", {64, 4096, 512}, {1}},
                 {"several last", {64, 64, 128, 256}, {1, 3}},
                 {"several", {64, 64, 128, 256}, {0, 2}},
                 {"several", {100, 31, 549, 2, 37}, {0, 2, 4}}};
  for (const auto& each : layouts)
    Add(each.kind + "/f32 " + FormatShape(each.shape), DType::kF32, each.shape, each.axes, false, cases);
}

}  // namespace tilewire::bench

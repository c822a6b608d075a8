#include "kernels/bench/rmse_data.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "kernels/bench/data.h"
#include "kernels/bench/parallel.h"
#include "kernels/figures/text.h"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::bench {
namespace {

constexpr uint64_t kSeed = 7;

class RmseWork : public Work {
 public:
  RmseWork(RmseData data, DeviceBuffer scratch, RmseKernel kernel)
      : data_(std::move(data)), scratch_(std::move(scratch)), kernel_(std::move(kernel)) {}

  Status Run(Stream stream) override { return kernel_.run(data_, scratch_.data(), stream); }

  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(RunOverNoise(stream));
    TILEWIRE_ASSIGN_OR_RETURN(const std::vector<double> first, data_.Results(stream));
    TILEWIRE_RETURN_IF_ERROR(RunOverNoise(stream));
    if (kernel_.reproducible) {
      TILEWIRE_ASSIGN_OR_RETURN(const std::vector<double> second, data_.Results(stream));
      const bool same = std::memcmp(first.data(), second.data(), first.size() * sizeof(double)) == 0;
      if (!same) return Fail(Status(Code::kInternal, "NOT_REPRODUCIBLE", "a second run gave other bits"));
    }
    return data_.Compare(kernel_.tolerance, stream);
  }

 private:
  /// A run that finds nothing of an earlier one: NaNs in place of results and scratch.
  Status RunOverNoise(Stream stream) {
    const auto results = static_cast<size_t>(data_.plan().result().bytes());
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaMemsetAsync(data_.result(), 0xff, results, stream), "filling"));
    const auto scratch = static_cast<size_t>(kernel_.scratch_bytes);
    if (scratch > 0)
      TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaMemsetAsync(scratch_.data(), 0xff, scratch, stream), "filling"));
    return Run(stream);
  }

  RmseData data_;
  DeviceBuffer scratch_;
  RmseKernel kernel_;
};

/// Memory of the host that copies from the device reach at full speed: touched by all threads (one alone
/// would take longer than all the rest) and pinned where the system lets us.
class HostMirror {
 public:
  explicit HostMirror(int64_t bytes)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes))) {
    constexpr int64_t kPage = 4096;
    ParallelFor(bytes / kPage, [&](int64_t begin, int64_t end) {
      for (int64_t page = begin; page < end; ++page)
        memory_[static_cast<size_t>(page * kPage)] = std::byte{0};
    });
    pinned_ =
        cudaHostRegister(memory_.get(), static_cast<size_t>(bytes), cudaHostRegisterDefault) == cudaSuccess;
    if (!pinned_) cudaGetLastError();
  }
  ~HostMirror() {
    if (pinned_) cudaHostUnregister(memory_.get());
  }
  HostMirror(const HostMirror&) = delete;
  HostMirror& operator=(const HostMirror&) = delete;
  void* data() const { return memory_.get(); }

 private:
  std::unique_ptr<std::byte[]> memory_;
  bool pinned_ = false;
};

Status Download(const DeviceBuffer& from, void* to) {
  return FromCuda(cudaMemcpy(to, from.data(), static_cast<size_t>(from.bytes()), cudaMemcpyDeviceToHost),
                  "copying to the host");
}

double RelativeError(double got, double expected) {
  return got == expected ? 0 : std::abs(got - expected) / std::abs(expected);
}

Status Wrong(size_t index, double got, double expected) {
  const std::string message = "result " + std::to_string(index) + " is " + std::to_string(got) + " (" +
                              std::to_string(std::bit_cast<uint64_t>(got)) + "), expected " +
                              std::to_string(expected) + " (" +
                              std::to_string(std::bit_cast<uint64_t>(expected)) + ')';
  return Status(Code::kInternal, "WRONG_RESULT", message);
}

}  // namespace

RmseProblem MakeRmseProblem(DType dtype, const std::vector<int64_t>& shape,
                            const std::vector<int32_t>& axes) {
  const auto spec = MakeSpec(dtype, shape);
  if (!spec) throw std::invalid_argument(spec.error().ToString());
  auto plan = rmse::Plan::Make(*spec, axes, rmse::Output::kRmse);
  if (!plan) throw std::invalid_argument(plan.error().ToString());
  return {*std::move(plan), axes, std::make_shared<std::vector<double>>()};
}

Result<RmseData> RmseData::Make(RmseProblem problem, Stream stream) {
  RmseData data(std::move(problem));
  const ArraySpec& operand = data.plan().operand();
  TILEWIRE_ASSIGN_OR_RETURN(data.a_, DeviceBuffer::Allocate(operand.bytes()));
  TILEWIRE_ASSIGN_OR_RETURN(data.b_, DeviceBuffer::Allocate(operand.bytes()));
  TILEWIRE_ASSIGN_OR_RETURN(data.result_, DeviceBuffer::Allocate(data.plan().result().bytes()));
  const int64_t elements = operand.shape.elements();
  TILEWIRE_RETURN_IF_ERROR(FillRandom(operand.dtype, data.a_.data(), elements, kSeed, stream));
  TILEWIRE_RETURN_IF_ERROR(FillRandom(operand.dtype, data.b_.data(), elements, kSeed + 1, stream));
  return data;
}

Result<std::vector<double>> RmseData::Compute() const {
  const HostMirror a(plan().operand().bytes()), b(plan().operand().bytes()), sums(plan().scratch_bytes());
  TILEWIRE_RETURN_IF_ERROR(Download(a_, a.data()));
  TILEWIRE_RETURN_IF_ERROR(Download(b_, b.data()));
  auto* tile_sums = static_cast<double*>(sums.data());
  const rmse::Range whole = plan().whole();
  ParallelFor(whole.items(), [&](int64_t begin, int64_t end) {
    rmse::HostRange(plan(), whole, begin, end, a.data(), b.data(), tile_sums);
  });
  std::vector<double> expected(static_cast<size_t>(results()));
  ParallelFor(results(), [&](int64_t begin, int64_t end) {
    rmse::HostFinish(plan(), begin, end, tile_sums, expected.data());
  });
  return expected;
}

Result<std::vector<double>> RmseData::Expected() const {
  if (!problem_.expected->empty()) return *problem_.expected;
  TILEWIRE_ASSIGN_OR_RETURN(std::vector<double> expected, Compute());
  constexpr size_t kMostKept = 1 << 20;  // many cases' answers are alive at one time
  if (expected.size() <= kMostKept) *problem_.expected = expected;
  return expected;
}

Result<std::vector<double>> RmseData::Results(Stream stream) const {
  TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "running"));
  std::vector<double> results(static_cast<size_t>(this->results()));
  TILEWIRE_RETURN_IF_ERROR(Download(result_, results.data()));
  return results;
}

Result<Check> RmseData::Compare(double tolerance, Stream stream) const {
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<double> got, Results(stream));
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<double> expected, Expected());
  Check check{tolerance == 0 ? Check::Kind::kExact : Check::Kind::kRelative};
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint64_t>(got[i]) == std::bit_cast<uint64_t>(expected[i])) continue;
    const double error = RelativeError(got[i], expected[i]);
    if (tolerance == 0 || !(error <= tolerance)) return Fail(Wrong(i, got[i], expected[i]));
    check.relative_error = std::max(check.relative_error, error);
  }
  return check;
}

RmseKernel OurRmse(const rmse::Plan& plan) {
  RmseKernel kernel;
  kernel.implementation = "tilewire";
  kernel.scratch_bytes = plan.scratch_bytes();
  kernel.run = [](const RmseData& data, void* scratch, Stream stream) -> Status {
    auto* sums = static_cast<double*>(scratch);
    const rmse::Plan& same = data.plan();
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(rmse::CudaRange(same, same.whole(), data.a(), data.b(), sums, stream), "tile sums"));
    return FromCuda(rmse::CudaFinish(same, sums, data.result(), stream), "combining tile sums");
  };
  return kernel;
}

RmseKernel OurRmseWhole(const rmse::Plan& plan) {
  RmseKernel kernel = OurRmse(plan);
  kernel.implementation = "tilewire whole";
  kernel.note = "CudaWhole: the sums' launch also finishes where it can";
  kernel.run = [](const RmseData& data, void* scratch, Stream stream) -> Status {
    return FromCuda(rmse::CudaWhole(data.plan(), data.a(), data.b(), static_cast<double*>(scratch),
                                    data.result(), stream),
                    "everything at once");
  };
  return kernel;
}

Case RmseCase(std::string group, std::string name, const RmseProblem& problem, RmseKernel kernel) {
  const rmse::Plan& plan = problem.plan;
  Case one;
  const auto dims = plan.operand().shape.dims();
  one.shape.assign(dims.begin(), dims.end());
  one.dtype = Name(plan.operand().dtype);
  one.axes = problem.axes;
  one.group = std::move(group);
  one.name = name.empty() ? one.dtype + '/' + FormatShape(one.shape) : std::move(name);
  one.implementation = kernel.implementation;
  one.note = kernel.note;
  one.bytes = 2 * plan.operand().bytes() + plan.result().bytes();
  one.memory_bytes = one.bytes + kernel.scratch_bytes;
  one.limit = kReadLimit;
  one.prepare = [problem, kernel = std::move(kernel)](Stream stream) -> Result<std::unique_ptr<Work>> {
    TILEWIRE_ASSIGN_OR_RETURN(RmseData data, RmseData::Make(problem, stream));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer scratch, DeviceBuffer::Allocate(kernel.scratch_bytes));
    return std::make_unique<RmseWork>(std::move(data), std::move(scratch), kernel);
  };
  return one;
}

}  // namespace tilewire::bench

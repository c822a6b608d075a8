#include "kernels/bench/move_work.h"

#include <memory>
#include <stdexcept>

#include "kernels/bench/data.h"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::bench {
namespace {

class MoveWork : public Work {
 public:
  MoveWork(MoveData data, DeviceBuffer wrong, const CaseInfo& info, DType dtype, MoveKernel kernel)
      : data_(std::move(data)),
        wrong_(std::move(wrong)),
        shape_(info.shape),
        axes_(info.axes),
        dtype_(dtype),
        kernel_(std::move(kernel)) {}

  Status Run(Stream stream) override { return kernel_.run(data_, stream); }
  bool Replayable() const override { return kernel_.replayable; }

  Result<Check> Verify(Stream stream) override {
    // What an earlier owner left in the memory could be the right answer.
    TILEWIRE_RETURN_IF_ERROR(FillRandomBytes(data_.out.data(), data_.out.bytes(), 11, stream));
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    auto* counter = wrong_.as<unsigned long long>();
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaMemsetAsync(counter, 0, sizeof *counter, stream), "clearing a counter"));
    TILEWIRE_RETURN_IF_ERROR(
        CountWrong(data_.in.data(), data_.out.data(), shape_, axes_, SizeOf(dtype_), counter, stream));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "checking"));
    unsigned long long wrong = 0;
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaMemcpy(&wrong, counter, sizeof wrong, cudaMemcpyDeviceToHost), "fetching a counter"));
    if (wrong == 0) return Check{Check::Kind::kExact};
    return Fail(Status(Code::kInternal, "WRONG_RESULT", std::to_string(wrong) + " elements are wrong"));
  }

 private:
  const MoveData data_;
  const DeviceBuffer wrong_;
  const std::vector<int64_t> shape_;
  const std::vector<int32_t> axes_;
  const DType dtype_;
  const MoveKernel kernel_;
};

ArraySpec SpecOf(DType dtype, const std::vector<int64_t>& shape) {
  const auto spec = MakeSpec(dtype, shape);
  if (!spec) throw std::invalid_argument(spec.error().ToString());
  return *spec;
}

}  // namespace

Case MoveCase(std::string group, std::string name, DType dtype, const std::vector<int64_t>& shape,
              const std::vector<int32_t>& axes, MoveKernel kernel) {
  const ArraySpec spec = SpecOf(dtype, shape);
  Case one;
  one.group = std::move(group);
  one.name = std::move(name);
  one.implementation = kernel.implementation;
  one.note = kernel.note;
  one.bytes = 2 * spec.bytes();
  one.memory_bytes = one.bytes + 256;
  one.limit = kCopyLimit;
  one.dtype = Name(dtype);
  one.shape = shape;
  one.axes = axes;
  const CaseInfo info = one;
  one.prepare = [info, spec, kernel = std::move(kernel)](Stream stream) -> Result<std::unique_ptr<Work>> {
    MoveData data;
    TILEWIRE_ASSIGN_OR_RETURN(data.in, DeviceBuffer::Allocate(spec.bytes()));
    TILEWIRE_ASSIGN_OR_RETURN(data.out, DeviceBuffer::Allocate(spec.bytes()));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer wrong, DeviceBuffer::Allocate(256));
    // bool is moved as any byte: 0 and 1 alone would hide half of all mistakes.
    const DType filled = spec.dtype == DType::kBool ? DType::kU8 : spec.dtype;
    TILEWIRE_RETURN_IF_ERROR(FillRandom(filled, data.in.data(), spec.shape.elements(), 5, stream));
    return std::make_unique<MoveWork>(std::move(data), std::move(wrong), info, spec.dtype, kernel);
  };
  return one;
}

MoveKernel OurMove(DType dtype, const std::vector<int64_t>& shape, const std::vector<int32_t>& axes) {
  auto plan = transpose::Plan::Make(SpecOf(dtype, shape), axes);
  if (!plan) throw std::invalid_argument(plan.error().ToString());
  MoveKernel kernel;
  kernel.implementation = "tilewire";
  kernel.run = [plan = *std::move(plan)](const MoveData& data, Stream stream) {
    return FromCuda(transpose::CudaRange(plan, plan.whole(), data.in.data(), data.out.data(), stream),
                    "transposing");
  };
  return kernel;
}

}  // namespace tilewire::bench

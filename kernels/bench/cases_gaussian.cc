// Gaussian pdf: one read and one write an element, held against a device copy.
#include <cstring>
#include <memory>
#include <stdexcept>

#include "kernels/bench/bench.h"
#include "kernels/bench/data.h"
#include "kernels/bench/device.h"
#include "kernels/bench/parallel.h"
#include "kernels/figures/text.h"
#include "kernels/gaussian/gaussian_cuda.h"

namespace tilewire::bench {
namespace {

class GaussianWork : public Work {
 public:
  GaussianWork(gaussian::Plan plan, DeviceBuffer in, DeviceBuffer out)
      : plan_(std::move(plan)), in_(std::move(in)), out_(std::move(out)) {}

  Status Run(Stream stream) override {
    return FromCuda(gaussian::CudaRange(plan_, plan_.whole(), in_.data(), out_.data(), stream),
                    "gaussian pdf");
  }

  /// The host's bits, element by element.
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(FillRandomBytes(out_.data(), out_.bytes(), 11, stream));
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "running"));
    const auto bytes = static_cast<size_t>(in_.bytes());
    const auto data = std::make_unique_for_overwrite<std::byte[]>(bytes);
    const auto got = std::make_unique_for_overwrite<std::byte[]>(bytes);
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaMemcpy(data.get(), in_.data(), bytes, cudaMemcpyDeviceToHost), "copying to the host"));
    TILEWIRE_RETURN_IF_ERROR(
        FromCuda(cudaMemcpy(got.get(), out_.data(), bytes, cudaMemcpyDeviceToHost), "copying to the host"));
    ParallelFor(gaussian::HostItems(plan_, plan_.whole()), [&](int64_t begin, int64_t end) {
      gaussian::HostRange(plan_, plan_.whole(), begin, end, data.get(), data.get());
    });
    if (std::memcmp(data.get(), got.get(), bytes) == 0) return Check{Check::Kind::kExact};
    size_t at = 0;
    while (data[at] == got[at]) ++at;
    const size_t element = at / static_cast<size_t>(SizeOf(plan_.input().dtype));
    return Fail(Status(Code::kInternal, "WRONG_RESULT",
                       "element " + std::to_string(element) + " is not what the host computes"));
  }

 private:
  const gaussian::Plan plan_;
  const DeviceBuffer in_, out_;
};

Case GaussianCase(DType dtype, int64_t bytes) {
  const std::vector<int64_t> shape = {bytes / SizeOf(dtype)};
  const auto spec = MakeSpec(dtype, shape);
  if (!spec) throw std::invalid_argument(spec.error().ToString());
  auto plan = gaussian::Plan::Make(*spec, 0.125, 0.375);
  if (!plan) throw std::invalid_argument(plan.error().ToString());
  Case one;
  one.group = "gaussian";
  one.name = std::string(Name(dtype)) + '/' + FormatBytes(bytes);
  one.implementation = "tilewire";
  one.bytes = one.memory_bytes = 2 * bytes;
  one.limit = kCopyLimit;
  one.dtype = Name(dtype);
  one.shape = shape;
  one.prepare = [plan = *std::move(plan)](Stream stream) -> Result<std::unique_ptr<Work>> {
    const ArraySpec& input = plan.input();
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer in, DeviceBuffer::Allocate(input.bytes()));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::Allocate(input.bytes()));
    TILEWIRE_RETURN_IF_ERROR(FillRandom(input.dtype, in.data(), input.shape.elements(), 9, stream));
    return std::make_unique<GaussianWork>(plan, std::move(in), std::move(out));
  };
  return one;
}

}  // namespace

void AddGaussianCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t mib : {1, 16, 256, 1024}) cases->push_back(GaussianCase(dtype, mib << 20));
  }
}

}  // namespace tilewire::bench

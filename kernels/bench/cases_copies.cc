// What the machine can do: plain copies and reads. The largest ones define the limits.
#include "kernels/bench/data.h"
#include "kernels/bench/device.h"
#include "kernels/bench/move_work.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

class ReadWork : public Work {
 public:
  ReadWork(DeviceBuffer data, DeviceBuffer sink) : data_(std::move(data)), sink_(std::move(sink)) {}
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "reading"));
    return Check{Check::Kind::kNothing};
  }
  Status Run(Stream stream) override {
    return ReadVectors(data_.data(), data_.bytes(), sink_.as<uint32_t>(), stream);
  }

 private:
  DeviceBuffer data_, sink_;
};

class EmptyWork : public Work {
 public:
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "running an empty kernel"));
    return Check{Check::Kind::kNothing};
  }
  Status Run(Stream stream) override { return EmptyKernel(stream); }
};

Case ReadCase(int64_t bytes) {
  Case one;
  one.group = "copies";
  one.name = "read/" + FormatBytes(bytes);
  one.implementation = "16-byte loads";
  one.bytes = bytes;
  one.memory_bytes = bytes + 256;
  one.limit = kReadLimit;
  one.prepare = [bytes](Stream stream) -> Result<std::unique_ptr<Work>> {
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer data, DeviceBuffer::Allocate(bytes));
    TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer sink, DeviceBuffer::Allocate(256));
    TILEWIRE_RETURN_IF_ERROR(FillRandomBytes(data.data(), bytes, 3, stream));
    return std::make_unique<ReadWork>(std::move(data), std::move(sink));
  };
  return one;
}

Status CopyByRuntime(const MoveData& data, Stream stream) {
  const auto bytes = static_cast<size_t>(data.in.bytes());
  return FromCuda(cudaMemcpyAsync(data.out.data(), data.in.data(), bytes, cudaMemcpyDeviceToDevice, stream),
                  "copying");
}

Status CopyByVectors(const MoveData& data, Stream stream) {
  return CopyVectors(data.in.data(), data.out.data(), data.in.bytes(), stream);
}

Case CopyCase(int64_t bytes, std::string implementation, MoveKernel::Function run, bool replayable) {
  MoveKernel kernel;
  kernel.replayable = replayable;
  kernel.implementation = std::move(implementation);
  kernel.run = std::move(run);
  return MoveCase("copies", "copy/" + FormatBytes(bytes), DType::kU32, {bytes / 4}, {0}, std::move(kernel));
}

}  // namespace

void AddCopyCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  Case empty;
  empty.group = "copies";
  empty.name = "nothing";
  empty.implementation = "empty kernel";
  empty.note = "what any measurement contains of launching and timing";
  empty.prepare = [](Stream) -> Result<std::unique_ptr<Work>> { return std::make_unique<EmptyWork>(); };
  cases->push_back(std::move(empty));
  // Where 2 GiB do not fit, the next smaller size that does must be able to define the limit: but a size that
  // the L2 holds would define a limit that memory does not have.
  for (const int64_t mib : {4, 32, 256, 1024, 2048}) {
    Case read = ReadCase(mib << 20);
    if (mib >= 1024) read.defines_limit = kReadLimit;
    cases->push_back(std::move(read));
  }
  for (const int64_t mib : {2, 16, 128, 512, 1024}) {
    Case vectors = CopyCase(mib << 20, "16-byte accesses", CopyByVectors, true);
    Case runtime = CopyCase(mib << 20, "cudaMemcpyAsync", CopyByRuntime, false);
    if (mib >= 512) vectors.defines_limit = runtime.defines_limit = kCopyLimit;
    cases->push_back(std::move(vectors));
    cases->push_back(std::move(runtime));
  }
}

}  // namespace tilewire::bench

// Timing on the GPU by events. Between two events of a stream lies what ran there and nothing of the host's
// time, as long as the host is ahead: so every timed run is enqueued while the device still works on
// something before it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "kernels/bench/data.h"
#include "kernels/bench/device.h"
#include "kernels/bench/meter.h"
#include "kernels/bench/replay.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

/// Hot runs are timed in batches that last at least that long.
constexpr double kBatchSeconds = 300e-6;
constexpr int kMaxBatch = 100;
/// Shorter runs are replayed as a graph: their launches would take the host longer than the device takes to
/// run them.
constexpr double kGraphBelowSeconds = 30e-6;
/// Runs that take longer are estimated by the first.
constexpr double kLongSeconds = 20e-3;
/// What one Sample() takes, about.
constexpr double kSampleSeconds = 10e-3;

Status Wait(Stream stream) {
  return FromCuda(cudaStreamSynchronize(stream), "waiting for the device");
}

/// Figures that one Sample() makes of runs of that length.
int FiguresOf(double seconds, int most) {
  return static_cast<int>(
      std::clamp(kSampleSeconds / std::max(seconds, 1e-9), 1.0, static_cast<double>(most)));
}

class HotSampler : public Sampler {
 public:
  /// `graph`: of a whole batch, or nothing: then runs are enqueued one by one.
  HotSampler(Work& work, Stream stream, Events events, std::optional<Graph> graph, int batch, double seconds)
      : work_(work),
        stream_(stream),
        events_(std::move(events)),
        graph_(std::move(graph)),
        batch_(batch),
        figures_(FiguresOf(seconds * batch, kMaxEvents - 1)) {}
  int batch() const override { return batch_; }

  Status Sample(std::vector<double>* seconds) override {
    TILEWIRE_RETURN_IF_ERROR(EnqueueBatch());  // not timed: puts the host ahead
    TILEWIRE_RETURN_IF_ERROR(events_.Record(0, stream_));
    for (int i = 0; i < figures_; ++i) {
      TILEWIRE_RETURN_IF_ERROR(EnqueueBatch());
      TILEWIRE_RETURN_IF_ERROR(events_.Record(i + 1, stream_));
    }
    TILEWIRE_RETURN_IF_ERROR(Wait(stream_));
    for (int i = 0; i < figures_; ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(const double total, events_.SecondsBetween(i, i + 1));
      seconds->push_back(total / batch_);
    }
    return {};
  }

 private:
  Status EnqueueBatch() {
    if (graph_) return graph_->Launch(stream_);
    for (int i = 0; i < batch_; ++i) TILEWIRE_RETURN_IF_ERROR(work_.Run(stream_));
    return {};
  }

  Work& work_;
  const Stream stream_;
  Events events_;
  const std::optional<Graph> graph_;
  const int batch_, figures_;
};

class ColdSampler : public Sampler {
 public:
  ColdSampler(Work& work, Stream stream, Events events, const DeviceBuffer& flush, double seconds)
      : work_(work),
        stream_(stream),
        events_(std::move(events)),
        flush_(flush),
        figures_(FiguresOf(seconds, kMaxEvents / 2)) {}

  Status Sample(std::vector<double>* seconds) override {
    for (int i = 0; i < figures_; ++i) {
      // Reading leaves clean lines of something else in the L2, so that no run pays for writing others' lines
      // back. It takes longer than the host needs to enqueue a run.
      TILEWIRE_RETURN_IF_ERROR(ReadVectors(flush_.data(), flush_.bytes() - 16, Sink(), stream_));
      TILEWIRE_RETURN_IF_ERROR(events_.Record(2 * i, stream_));
      TILEWIRE_RETURN_IF_ERROR(work_.Run(stream_));
      TILEWIRE_RETURN_IF_ERROR(events_.Record(2 * i + 1, stream_));
    }
    TILEWIRE_RETURN_IF_ERROR(Wait(stream_));
    for (int i = 0; i < figures_; ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(const double one, events_.SecondsBetween(2 * i, 2 * i + 1));
      seconds->push_back(one);
    }
    return {};
  }

 private:
  uint32_t* Sink() const { return flush_.as<uint32_t>() + flush_.bytes() / 4 - 1; }

  Work& work_;
  const Stream stream_;
  Events events_;
  const DeviceBuffer& flush_;
  const int figures_;
};

/// The host's clock from the first call to the end of the work on the device, spinning.
class CompletionSampler : public Sampler {
 public:
  CompletionSampler(Work& work, Stream stream) : work_(work), stream_(stream) {}

  Status Sample(std::vector<double>* seconds) override {
    const auto begin = std::chrono::steady_clock::now();
    TILEWIRE_RETURN_IF_ERROR(work_.Run(stream_));
    TILEWIRE_RETURN_IF_ERROR(Wait(stream_));
    seconds->push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return {};
  }

 private:
  Work& work_;
  const Stream stream_;
};

class DeviceMeter : public Meter {
 public:
  DeviceMeter(cudaDeviceProp properties, int64_t memory_bytes, Stream stream, DeviceBuffer flush)
      : properties_(properties), memory_bytes_(memory_bytes), stream_(stream), flush_(std::move(flush)) {}
  ~DeviceMeter() override { cudaStreamDestroy(stream_); }
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  Stream stream() const override { return stream_; }
  int64_t memory_bytes() const override { return memory_bytes_; }
  Facts facts() const override;
  Result<std::unique_ptr<Sampler>> Begin(Work& work, Mode mode) override;

 private:
  /// Seconds of one hot run, roughly.
  Result<double> Estimate(Work& work, const Events& events) const;

  const cudaDeviceProp properties_;
  const int64_t memory_bytes_;
  const Stream stream_;
  const DeviceBuffer flush_;
};

Facts DeviceMeter::facts() const {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const auto version = [](int v) { return std::to_string(v / 1000) + '.' + std::to_string(v % 1000 / 10); };
  return {
      {"gpu", properties_.name},
      {"gpu architecture", "sm_" + std::to_string(properties_.major) + std::to_string(properties_.minor) +
                               ", " + std::to_string(properties_.multiProcessorCount) + " multiprocessors"},
      {"gpu memory", FormatBytes(static_cast<int64_t>(properties_.totalGlobalMem)) + ", L2 " +
                         FormatBytes(properties_.l2CacheSize) + ", flushed by reading " +
                         FormatBytes(flush_.bytes())},
      {"cuda", "runtime " + version(runtime) + ", driver " + version(driver)}};
}

Result<double> DeviceMeter::Estimate(Work& work, const Events& events) const {
  double best = 0;
  for (int i = 0; i < 4 && best < kLongSeconds; ++i) {
    TILEWIRE_RETURN_IF_ERROR(events.Record(0, stream_));
    TILEWIRE_RETURN_IF_ERROR(work.Run(stream_));
    TILEWIRE_RETURN_IF_ERROR(events.Record(1, stream_));
    TILEWIRE_RETURN_IF_ERROR(Wait(stream_));
    TILEWIRE_ASSIGN_OR_RETURN(const double seconds, events.SecondsBetween(0, 1));
    best = i <= 1 ? seconds : std::min(best, seconds);  // the first may load the kernel
  }
  return best;
}

Result<std::unique_ptr<Sampler>> DeviceMeter::Begin(Work& work, Mode mode) {
  TILEWIRE_ASSIGN_OR_RETURN(Events events, Events::Make());
  TILEWIRE_ASSIGN_OR_RETURN(const double seconds, Estimate(work, events));
  if (mode == Mode::kCompletion) return std::make_unique<CompletionSampler>(work, stream_);
  if (mode == Mode::kCold)
    return std::make_unique<ColdSampler>(work, stream_, std::move(events), flush_, seconds);
  const double runs = std::ceil(kBatchSeconds / std::max(seconds, 1e-9));
  const int batch = static_cast<int>(std::clamp(runs, 1.0, static_cast<double>(kMaxBatch)));
  std::optional<Graph> graph;
  if (seconds < kGraphBelowSeconds && work.Replayable()) {
    TILEWIRE_ASSIGN_OR_RETURN(graph, Graph::Capture(work, batch, stream_));
  }
  return std::make_unique<HotSampler>(work, stream_, std::move(events), std::move(graph), batch, seconds);
}

/// Reads for a while, so that clocks have risen before the first measurement.
Status WarmUp(const DeviceBuffer& buffer, Stream stream) {
  TILEWIRE_RETURN_IF_ERROR(FillRandomBytes(buffer.data(), buffer.bytes(), 1, stream));
  auto* sink = buffer.as<uint32_t>() + buffer.bytes() / 4 - 1;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(300)) {
    for (int i = 0; i < 20; ++i)
      TILEWIRE_RETURN_IF_ERROR(ReadVectors(buffer.data(), buffer.bytes() - 16, sink, stream));
    TILEWIRE_RETURN_IF_ERROR(Wait(stream));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Meter>> MakeDeviceMeter(int device, int64_t max_bytes) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || device >= count) {
    cudaGetLastError();
    const std::string why =
        error != cudaSuccess ? std::string(cudaGetErrorString(error)) : "there are " + std::to_string(count);
    return Fail(Status(Code::kUnavailable, "NO_DEVICE", "no GPU " + std::to_string(device) + ": " + why));
  }
  const cudaError_t initialised = cudaInitDevice(device, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid);
  TILEWIRE_RETURN_IF_ERROR(FromCuda(initialised, "initialising the GPU"));
  TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaSetDevice(device), "choosing the GPU"));
  cudaDeviceProp properties{};
  TILEWIRE_RETURN_IF_ERROR(
      FromCuda(cudaGetDeviceProperties(&properties, device), "asking for the GPU's properties"));
  TILEWIRE_ASSIGN_OR_RETURN(DeviceBuffer flush,
                            DeviceBuffer::Allocate(4 * std::max<int64_t>(properties.l2CacheSize, 1 << 20)));
  size_t free_bytes = 0, total_bytes = 0;
  TILEWIRE_RETURN_IF_ERROR(FromCuda(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory"));
  if (max_bytes == 0) max_bytes = static_cast<int64_t>(free_bytes / 10 * 9);
  Stream stream = nullptr;
  TILEWIRE_RETURN_IF_ERROR(
      FromCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream"));
  TILEWIRE_RETURN_IF_ERROR(WarmUp(flush, stream));
  return std::make_unique<DeviceMeter>(properties, max_bytes, stream, std::move(flush));
}

}  // namespace tilewire::bench

// One CUDA stream as a lane. Included by the CUDA files of the engine only.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/cuda_error.h"
#include "server/engine/device.h"
#include "server/engine/lane_clock.h"

namespace tilewire::engine {

/// Copies from and to memory of others of up to so many bytes are done by a kernel, larger ones by a copy
/// engine. A driver reads a small source with the CPU, which ends the process where a client has made its
/// file smaller meanwhile: up to 24 KiB as measured, so this is ten times as much.
inline constexpr size_t kMostByKernel = size_t{256} << 10;

/// Everything submitted is enqueued on the stream at once, between two events; one thread a lane waits for
/// the events in order (it spins briefly, then sleeps) and calls back. Thread-safe.
class CudaLane final : public Lane {
 public:
  /// `health` is the device's and outlives the lane. Fails as the device does.
  static Result<std::unique_ptr<Lane>> Make(int ordinal, LanePriority priority, CudaHealth* health);
  /// Callbacks that run meanwhile may submit more; that too is done before it returns.
  ~CudaLane() override;

  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override;
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override;
  // The CPU touches no byte of these: the device copies from and to the pages that were pinned, whatever
  // became of the file that they were of; or from device to device: the addresses tell.
  void CopyInShared(std::byte* device, const std::byte* shared, size_t bytes, OnComplete done) override {
    CopyShared(device, shared, bytes, std::move(done));
  }
  void CopyOutShared(std::byte* shared, const std::byte* device, size_t bytes, OnComplete done) override {
    CopyShared(shared, device, bytes, std::move(done));
  }
  void Launch(const Work& work, OnComplete done) override;
  void Help(std::chrono::microseconds budget) override;

 private:
  struct Submission {
    Status status;  ///< of submitting it
    /// Null: never got that far. `enqueued` without `stop`: only the whole stream can be waited for.
    cudaEvent_t start = nullptr, stop = nullptr;
    bool enqueued = false;
    TimePoint submitted;
    OnComplete done;
  };

  CudaLane(int ordinal, cudaStream_t stream, CudaHealth* health);
  void CopyShared(std::byte* to, const std::byte* from, size_t bytes, OnComplete done);
  /// Puts `enqueue(stream)` between two events. Never calls back itself.
  template <typename Enqueue>
  void Submit(const Enqueue& enqueue, OnComplete done);
  /// The CUDA part of Submit; under the lock, so that the queue has the stream's order.
  template <typename Enqueue>
  Status EnqueueLocked(const Enqueue& enqueue, Submission& submission);
  Result<cudaEvent_t> TakeEventLocked();
  /// Records the first anchor and waits for it. Before anything is submitted.
  Status StartClock();
  void Serve();
  /// Calls back for the oldest submission; `lock` is released meanwhile. One thread at a time, so the order
  /// holds.
  void ServeFirst(std::unique_lock<std::mutex>& lock);
  /// Waits until the submission is done on the device, and says how it ended. Takes its stop event for the
  /// next anchor and leaves the old one in its place.
  Completion Finish(Submission& submission);
  /// When the submission ran, or nothing where the device cannot tell.
  std::optional<LaneClock::Placed> WhenItRan(const Submission& submission, TimePoint noticed);

  const int ordinal_;
  const cudaStream_t stream_;
  CudaHealth* const health_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Submission> queue_;
  std::vector<cudaEvent_t> free_events_;
  /// Used by whoever serves, so by one thread at a time.
  cudaEvent_t anchor_ = nullptr;
  std::optional<LaneClock> clock_;
  bool serving_ = false;  ///< by the lane's thread or a helper
  bool stop_ = false;
  std::thread thread_;  ///< last: it uses all the others
};

}  // namespace tilewire::engine

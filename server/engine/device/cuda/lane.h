// One CUDA stream as a lane. Included by the CUDA files of the engine only.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/engine/device/cuda/error.h"
#include "server/engine/device/cuda/lane_clock.h"
#include "server/engine/device/device.h"
#include "server/engine/device/lane_turns.h"

namespace tilewire::engine {

/// Copies from and to memory of others of up to so many bytes are done by a kernel, larger ones by a copy
/// engine. A driver reads a small source with the CPU, which ends the process where a client has made its
/// file smaller meanwhile: up to 24 KiB as measured, so this is ten times as much.
inline constexpr size_t kMostByKernel = size_t{256} << 10;

/// Everything submitted is enqueued on the stream at once, between two events or before one; one thread a
/// lane, or one that lends itself, waits for the events in order (it spins briefly, then sleeps) and calls
/// back. Thread-safe.
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
  void AnnounceHelp() override { turns_.Announce(); }
  void Help(std::chrono::microseconds budget) override;
  void WithdrawHelp() override { turns_.Withdraw(); }
  uint64_t wakes() const override { return turns_.wakes(); }

 private:
  struct Submission {
    Status status;  ///< of submitting it
    /// A copy that was enqueued behind another submission. It has no start event: the device goes from one to
    /// the other, and each event between two copies keeps the bus idle for about a microsecond.
    bool follows = false;
    /// A small launch on an idle lane: its time is from when it was `launched` until its end was noticed.
    bool begins_at_once = false;
    TimePoint launched;
    /// Null: never got that far. `enqueued` without `stop`: only the whole stream can be waited for.
    cudaEvent_t start = nullptr, stop = nullptr;
    bool enqueued = false;
    TimePoint submitted;
    std::chrono::microseconds spin{0};  ///< how long to wait for it awake
    OnComplete done;
  };

  CudaLane(int ordinal, LanePriority priority, cudaStream_t stream, CudaHealth* health);
  void CopyShared(std::byte* to, const std::byte* from, size_t bytes, OnComplete done);
  /// Puts `enqueue(stream)` between two events, or before one. Never calls back itself.
  template <typename Enqueue>
  void Submit(const Enqueue& enqueue, OnComplete done, std::chrono::microseconds spin, bool is_copy);
  /// The CUDA part of Submit, in the order of the queue.
  template <typename Enqueue>
  Status EnqueueInOrder(const Enqueue& enqueue, Submission& submission);
  Result<cudaEvent_t> TakeEvent();
  void ReturnEvent(cudaEvent_t event);
  /// Records the first anchor and waits for it. Before anything is submitted.
  Status StartClock();
  /// The lane's own thread.
  void Serve();
  /// Waits for a submission and calls back.
  void ServeOne(Submission& submission);
  /// Waits until the submission is done on the device, and says how it ended. Takes its stop event for the
  /// next anchor and leaves the old one in its place.
  Completion Finish(Submission& submission);
  /// When the submission ran, or nothing where the device cannot tell.
  std::optional<LaneClock::Placed> WhenItRan(const Submission& submission, TimePoint noticed);

  const int ordinal_;
  const bool small_;  ///< for small jobs
  const cudaStream_t stream_;
  CudaHealth* const health_;
  LaneTurns<Submission> turns_;
  std::atomic<int> unfinished_{0};  ///< submissions that the device may still have to do
  Mutex events_mutex_;
  std::vector<cudaEvent_t> free_events_ TILEWIRE_GUARDED_BY(events_mutex_);
  /// Used by whoever serves, so by one thread at a time.
  cudaEvent_t anchor_ = nullptr;
  std::optional<LaneClock> clock_;
  std::thread thread_;  ///< last: it uses all the others
};

}  // namespace tilewire::engine

#include "server/engine/device/cuda/lane.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/array/copy_cuda.h"
#include "kernels/operation/operation_cuda.h"

namespace tilewire::engine {
namespace {

/// Waking a sleeping thread takes some 10 to 50 µs, in a virtual machine often 200 and more: what ends sooner
/// is waited for without sleeping, what takes longer must not burn a core.
constexpr auto kSpin = std::chrono::microseconds(50);
/// A block of the usual size crosses the bus in 80 to 100 µs; the next ones must be enqueued before those
/// that are under way have ended. With 50 µs, staged pipelines reached 65 to 97% of plain copies both ways.
constexpr auto kCopySpin = std::chrono::microseconds(200);
/// For work on operands that were all there: a caller waits for this and nothing else. With it the
/// server's time beyond the kernel fell from 173 to 105 µs for 2 GiB.
constexpr auto kLongSpin = std::chrono::milliseconds(1);

/// `sleeps`: the event was made for those who sleep until it is over.
cudaError_t Wait(cudaEvent_t event, std::chrono::microseconds spin, bool sleeps) {
  const TimePoint begin = Clock::now(), until = begin + spin;
  for (TimePoint now = begin; now < until; now = Clock::now()) {
    const cudaError_t error = cudaEventQuery(event);
    if (error != cudaErrorNotReady) return error;
    // Each query takes a lock of the driver's that others need to submit.
    if (now - begin > kSpin)
      while (Clock::now() - now < std::chrono::microseconds(2)) {
      }
  }
  if (sleeps) return cudaEventSynchronize(event);
  for (;;) {  // others keep the device busy, or it hangs
    std::this_thread::sleep_for(kSpin);
    const cudaError_t error = cudaEventQuery(event);
    if (error != cudaErrorNotReady) return error;
  }
}

}  // namespace

Result<std::unique_ptr<Lane>> CudaLane::Make(int ordinal, LanePriority priority, CudaHealth* health) {
  TILEWIRE_RETURN_IF_ERROR(health->status());
  TILEWIRE_RETURN_IF_ERROR(health->Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal))));
  int lowest = 0, highest = 0;
  TILEWIRE_RETURN_IF_ERROR(
      health->Note(TILEWIRE_CUDA_STATUS(cudaDeviceGetStreamPriorityRange(&lowest, &highest))));
  cudaStream_t stream = nullptr;
  const int number = priority == LanePriority::kSmall ? highest : lowest;
  TILEWIRE_RETURN_IF_ERROR(health->Note(
      TILEWIRE_CUDA_STATUS(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, number))));
  std::unique_ptr<CudaLane> lane(new CudaLane(ordinal, priority, stream, health));
  TILEWIRE_RETURN_IF_ERROR(health->Note(lane->StartClock()));
  return lane;
}

CudaLane::CudaLane(int ordinal, LanePriority priority, cudaStream_t stream, CudaHealth* health)
    : ordinal_(ordinal),
      small_(priority == LanePriority::kSmall),
      stream_(stream),
      health_(health),
      thread_([this] { Serve(); }) {
  pthread_setname_np(thread_.native_handle(), "tw-cuda-lane");
}

CudaLane::~CudaLane() {
  turns_.Stop();
  thread_.join();
  IgnoreCudaError(cudaSetDevice(ordinal_));
  for (cudaEvent_t event : free_events_) IgnoreCudaError(cudaEventDestroy(event));
  if (anchor_) IgnoreCudaError(cudaEventDestroy(anchor_));
  IgnoreCudaError(cudaStreamDestroy(stream_));
}

void CudaLane::CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) {
  Submit([=](cudaStream_t s) { return cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, s); },
         std::move(done), kCopySpin, true);
}

void CudaLane::CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) {
  Submit([=](cudaStream_t s) { return cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, s); },
         std::move(done), kCopySpin, true);
}

void CudaLane::CopyShared(std::byte* to, const std::byte* from, size_t bytes, OnComplete done) {
  const auto copy = [=](cudaStream_t s) {
    return bytes <= kMostByKernel ? gpu::CopyBytes(to, from, bytes, s)
                                  : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s);
  };
  Submit(copy, std::move(done), kCopySpin, true);
}

void CudaLane::Launch(const Work& work, OnComplete done) {
  Submit([&](cudaStream_t s) { return EnqueueStep(*work.problem, work.step, work.buffers, s); },
         std::move(done), work.problem->range_finishes() ? kLongSpin : kSpin, false);
}

template <typename EnqueueOn>
void CudaLane::Submit(const EnqueueOn& enqueue, OnComplete done, std::chrono::microseconds spin,
                      bool is_copy) {
  Submission submission;
  submission.spin = spin;
  submission.done = std::move(done);
  submission.submitted = Clock::now();
  turns_.Push([&](bool behind) {
    submission.follows = behind && is_copy;
    const bool idle = unfinished_.fetch_add(1) == 0;
    submission.begins_at_once = idle && small_ && !is_copy;
    submission.status = health_->status();
    if (submission.status.ok()) submission.status = health_->Note(EnqueueInOrder(enqueue, submission));
    if (submission.begins_at_once) submission.launched = Clock::now();
    return std::move(submission);
  });
}

template <typename EnqueueOn>
Status CudaLane::EnqueueInOrder(const EnqueueOn& enqueue, Submission& submission) {
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal_)));
  if (!submission.follows && !submission.begins_at_once) {
    TILEWIRE_ASSIGN_OR_RETURN(submission.start, TakeEvent());
  }
  TILEWIRE_ASSIGN_OR_RETURN(cudaEvent_t stop, TakeEvent());
  // Part of the work may be on the stream even where enqueueing the rest failed: it is waited for all the
  // same.
  Status status;
  if (submission.start) status = TILEWIRE_CUDA_STATUS(cudaEventRecord(submission.start, stream_));
  if (status.ok()) {
    submission.enqueued = true;
    status = ToStatus(enqueue(stream_), "submission to a stream", __FILE__, __LINE__);
  }
  const Status recorded = TILEWIRE_CUDA_STATUS(cudaEventRecord(stop, stream_));
  if (recorded.ok()) {
    submission.stop = stop;
  } else {
    ReturnEvent(stop);
  }
  return status.ok() ? recorded : status;
}

Result<cudaEvent_t> CudaLane::TakeEvent() {
  cudaEvent_t event = nullptr;
  {
    MutexLock lock(events_mutex_);
    if (!free_events_.empty()) {
      event = free_events_.back();
      free_events_.pop_back();
      return event;
    }
  }
  // What is small ends before a thread could be asleep, and needs no interrupt to tell of its end.
  const unsigned flags = small_ ? cudaEventDefault : cudaEventBlockingSync;
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaEventCreateWithFlags(&event, flags)));
  return event;
}

void CudaLane::ReturnEvent(cudaEvent_t event) {
  MutexLock lock(events_mutex_);
  if (event) free_events_.push_back(event);
}

Status CudaLane::StartClock() {
  TILEWIRE_ASSIGN_OR_RETURN(anchor_, TakeEvent());
  // The first use of a stream may take long and would leave the anchor's place wide open: the second counts.
  for (int i = 0; i < 2; ++i) {
    const TimePoint earliest = Clock::now();
    TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaEventRecord(anchor_, stream_)));
    TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(Wait(anchor_, kSpin, !small_)));
    clock_.emplace(earliest, Clock::now());
  }
  return {};
}

void CudaLane::Serve() {
  IgnoreCudaError(cudaSetDevice(ordinal_));
  turns_.Run([this](Submission& submission) { ServeOne(submission); });
}

void CudaLane::ServeOne(Submission& submission) {
  const Completion completion = Finish(submission);
  // Back before the callback, so that what it submits finds them.
  ReturnEvent(std::exchange(submission.start, nullptr));
  ReturnEvent(std::exchange(submission.stop, nullptr));
  submission.done(completion);
}

void CudaLane::Help(std::chrono::microseconds budget) {
  // Without a sleep or a yield: what a helper waits for is about to come, or left to the lane's thread.
  const auto ready = [](const Submission& submission, TimePoint until) {
    // Also where the work is done already: others' may be without end.
    if (!submission.stop || Clock::now() >= until) return false;
    while (cudaEventQuery(submission.stop) == cudaErrorNotReady)
      if (Clock::now() >= until) return false;
    return true;
  };
  turns_.Help(Clock::now() + budget, ready, [this](Submission& submission) { ServeOne(submission); });
}

Completion CudaLane::Finish(Submission& submission) {
  Completion completion;
  completion.status = submission.status;
  if (submission.stop || submission.enqueued) {
    const cudaError_t error =
        submission.stop ? Wait(submission.stop, submission.spin, !small_) : cudaStreamSynchronize(stream_);
    const Status waited = health_->Note(ToStatus(error, "execution on a stream", __FILE__, __LINE__));
    if (completion.status.ok()) completion.status = waited;
  }
  unfinished_.fetch_sub(1);
  completion.end = Clock::now();
  completion.begin = submission.submitted;
  if (!completion.status.ok()) return completion;
  if (submission.begins_at_once) {
    // A call waits for this: another event, and asking both for their times, would make it longer.
    clock_->Restart(submission.submitted, completion.end);
    completion.begin = std::min(submission.launched, completion.end);
    std::swap(anchor_, submission.stop);
  } else if (const auto placed = WhenItRan(submission, completion.end)) {
    completion.begin = placed->begin;
    completion.end = placed->end;
    std::swap(anchor_, submission.stop);
  }
  return completion;
}

std::optional<LaneClock::Placed> CudaLane::WhenItRan(const Submission& submission, TimePoint noticed) {
  // Floats of milliseconds: the longer the lane was idle, the coarser the second one. Hence the length by
  // itself.
  float length_ms = 0, stop_ms = 0;
  cudaError_t error = cudaEventElapsedTime(&stop_ms, anchor_, submission.stop);
  if (submission.follows) {
    length_ms = stop_ms;  // the anchor is the stop of what it follows
  } else if (error == cudaSuccess) {
    error = cudaEventElapsedTime(&length_ms, submission.start, submission.stop);
  }
  IgnoreCudaError(error);  // a missing time fails no job
  if (error != cudaSuccess) return std::nullopt;
  const auto duration = [](float ms) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
  };
  return clock_->Place(duration(length_ms), duration(stop_ms), submission.submitted, noticed,
                       submission.follows);
}

}  // namespace tilewire::engine

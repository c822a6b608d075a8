#include "server/engine/measure/ceilings.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <optional>
#include <system_error>

#include "kernels/operation/copy.h"
#include "server/base/memory.h"
#include "server/base/mutex.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kNoThreadRetryMs = 1000;

/// Copies of one direction in a row: enough that their start and end hardly count.
constexpr int kCopies = 8;
constexpr int kRepeats = 4;

double Rate(double bytes, TimePoint begin, TimePoint end) {
  const double seconds = std::chrono::duration<double>(end - begin).count();
  return seconds > 0 ? bytes / seconds : 0;
}

/// Several submissions, on any lanes: their window and first failure once all are done.
class Batch {
 public:
  OnComplete Add() {
    MutexLock lock(mutex_);
    ++open_;
    return [this](const Completion& completion) {
      // Notified under the lock: the batch may be gone once the waiting thread has seen the last one.
      MutexLock inner(mutex_);
      if (!completion.status.ok() && failure_.ok()) failure_ = completion.status;
      begin_ = begin_ ? std::min(*begin_, completion.begin) : completion.begin;
      end_ = end_ ? std::max(*end_, completion.end) : completion.end;
      if (--open_ == 0) done_.NotifyAll();
    };
  }
  /// Bytes a second of `bytes` moved from the first begin to the last end.
  Result<double> Rate(double bytes) {
    MutexLock lock(mutex_);
    while (open_ > 0) done_.Wait(mutex_);
    TILEWIRE_RETURN_IF_ERROR(failure_);
    return engine::Rate(bytes, *begin_, *end_);
  }

 private:
  Mutex mutex_;
  CondVar done_;
  int open_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  Status failure_ TILEWIRE_GUARDED_BY(mutex_);
  std::optional<TimePoint> begin_ TILEWIRE_GUARDED_BY(mutex_), end_ TILEWIRE_GUARDED_BY(mutex_);
};

/// Lanes and memory of one measurement.
class Bench {
 public:
  static Result<Bench> Make(Device* device, int64_t unit) {
    Bench bench;
    bench.device_ = device;
    bench.bytes_ = static_cast<size_t>(unit);
    const bool host_memory = device->facts().host_memory;
    for (int i = 0; i < 2; ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(bench.lanes_[i], device->MakeLane(LanePriority::kBulk));
      TILEWIRE_ASSIGN_OR_RETURN(bench.there_[i], device->AllocateDevice(bench.bytes_));
      TILEWIRE_ASSIGN_OR_RETURN(bench.here_[i], host_memory ? device->AllocateDevice(bench.bytes_)
                                                            : device->AllocatePinned(bench.bytes_));
      std::memset(bench.here_[i].data(), i + 1, bench.bytes_);  // its pages exist from here on
      // Unwritten memory of the host reads from one page of zeros, which the cache holds.
      if (host_memory) std::memset(bench.there_[i].data(), i + 3, bench.bytes_);
    }
    bench.source_.resize(2 * bench.bytes_, std::byte{3});
    return bench;
  }

  /// One way alone.
  Result<double> OneWay(bool in) {
    double best = 0;
    for (int i = 0; i < kRepeats; ++i) {
      Batch batch;
      Submit(in, &batch);
      TILEWIRE_ASSIGN_OR_RETURN(const double rate, batch.Rate(Moved()));
      best = std::max(best, rate);
    }
    return best;
  }
  /// Each way while the other runs too.
  Result<std::pair<double, double>> BothWays() {
    std::pair<double, double> best{0, 0};
    for (int i = 0; i < kRepeats; ++i) {
      Batch in, out;
      Submit(true, &in);
      Submit(false, &out);
      const Result<double> rate_in = in.Rate(Moved()),
                           rate_out = out.Rate(Moved());  // both, before either goes
      TILEWIRE_RETURN_IF_ERROR(rate_in ? Status() : rate_in.error());
      TILEWIRE_RETURN_IF_ERROR(rate_out ? Status() : rate_out.error());
      if (*rate_in + *rate_out > best.first + best.second) best = {*rate_in, *rate_out};
    }
    return best;
  }
  /// Device to device, bytes read and written.
  Result<double> DeviceCopy() {
    const std::array<int64_t, 1> shape{static_cast<int64_t>(bytes_)};
    TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec spec, MakeSpec(DType::kU8, shape));
    const std::unique_ptr<Problem> copy = MakeCopy(spec);
    Work work{.problem = copy.get()};
    work.buffers.operands[0] = there_[0].data();
    work.buffers.results[0] = there_[1].data();
    double best = 0;
    for (int i = 0; i < kRepeats; ++i) {
      Batch batch;
      for (int k = 0; k < kCopies; ++k) lanes_[0]->Launch(work, batch.Add());
      TILEWIRE_ASSIGN_OR_RETURN(const double rate, batch.Rate(2 * Moved()));
      best = std::max(best, rate);
    }
    return best;
  }
  /// memcpy from ordinary into pinned memory by that many threads, each its own part.
  double HostCopy(int threads) {
    const size_t part = 2 * bytes_ / static_cast<size_t>(threads) / 64 * 64;
    std::vector<TimePoint> times;  // written in the barrier's completion step, by one thread at a time
    std::barrier together(threads, [&times]() noexcept { times.push_back(Clock::now()); });
    times.reserve(kRepeats + 2);
    const auto copy = [&](int thread) {
      const std::byte* from = source_.data() + static_cast<size_t>(thread) * part;
      const size_t begin = static_cast<size_t>(thread) * part;
      for (int i = 0; i <= kRepeats; ++i) {
        together.arrive_and_wait();
        CopyToPinned(begin, from, part);
      }
      together.arrive_and_wait();
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(copy, i);
    copy(0);
    for (auto& thread : others) thread.join();
    double best = 0;
    for (size_t i = 1; i < times.size(); ++i)
      best = std::max(best, Rate(static_cast<double>(part) * threads, times[i - 1], times[i]));
    return best;
  }

 private:
  double Moved() const { return static_cast<double>(bytes_) * kCopies; }
  void Submit(bool in, Batch* batch) {
    for (int k = 0; k < kCopies; ++k) {
      if (in) {
        lanes_[0]->CopyIn(there_[0].data(), here_[0].data(), bytes_, batch->Add());
      } else {
        lanes_[1]->CopyOut(here_[1].data(), there_[1].data(), bytes_, batch->Add());
      }
    }
  }
  /// Bytes [begin, begin + bytes) of the two pinned pieces taken as one.
  void CopyToPinned(size_t begin, const std::byte* from, size_t bytes) {
    const size_t first = begin < bytes_ ? std::min(bytes, bytes_ - begin) : 0;
    if (first > 0) std::memcpy(here_[0].data() + begin, from, first);
    if (first < bytes) std::memcpy(here_[1].data() + (begin + first - bytes_), from + first, bytes - first);
  }

  Device* device_ = nullptr;
  size_t bytes_ = 0;
  std::array<Memory, 2> there_, here_;
  std::vector<std::byte> source_;
  std::array<std::unique_ptr<Lane>, 2> lanes_;  ///< last: they wait for what uses the memory
};

}  // namespace

Result<std::vector<Ceiling>> MeasureCeilings(Device* device, const CeilingMemory& memory) {
  TILEWIRE_ASSIGN_OR_RETURN(Bench bench, Bench::Make(device, memory.unit));
  std::vector<Ceiling> ceilings;
  if (!device->facts().host_memory) {
    TILEWIRE_ASSIGN_OR_RETURN(const double in, bench.OneWay(true));
    TILEWIRE_ASSIGN_OR_RETURN(const double out, bench.OneWay(false));
    TILEWIRE_ASSIGN_OR_RETURN(const auto both, bench.BothWays());
    ceilings = {{"h2d", in}, {"d2h", out}, {"h2d_both", both.first}, {"d2h_both", both.second}};
  }
  ceilings.push_back({"host_copy_1", bench.HostCopy(1)});
  ceilings.push_back({"host_copy_all", bench.HostCopy(DefaultCpuThreads())});
  TILEWIRE_ASSIGN_OR_RETURN(const double copy, bench.DeviceCopy());
  ceilings.push_back({"device_copy", copy});
  return ceilings;
}

CeilingMeter::~CeilingMeter() {
  if (thread_.joinable()) thread_.join();
}

void CeilingMeter::Measure(const CeilingMemory& memory, OnMeasured on_measured) {
  if (thread_.joinable()) thread_.join();  // the last one: it has nothing left to do but to end
  try {
    thread_ = std::thread([this, memory, on_measured] {
      auto ceilings = MeasureCeilings(device_, memory);
      on_measured(std::move(ceilings));
    });
  } catch (const std::system_error&) {
    return on_measured(Fail(Busy("no thread can be made for it", kNoThreadRetryMs)));
  }
  pthread_setname_np(thread_.native_handle(), "tw-ceilings");
}

}  // namespace tilewire::engine

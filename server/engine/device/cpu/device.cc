#include "server/engine/device/cpu/device.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>
#include <variant>

#include "server/base/limits.h"
#include "server/base/memory.h"
#include "server/engine/device/cpu/guarded_copy.h"
#include "server/engine/device/cpu/worker_pool.h"
#include "server/engine/device/lane_turns.h"
#include "server/engine/device/memory_pool.h"
#include "server/engine/device/shared_memory.h"

namespace tilewire::engine {
namespace {

/// Copies are split less finely than kernels: one thread already gets a good part of the memory rate.
constexpr int64_t kCopyPieceBytes = kMiB;
/// Pieces from here on are mapped one by one and go back to the system when freed; smaller ones would run
/// into the kernel's limit of 65,530 mappings.
constexpr size_t kMapBytes = 512 * kKiB;
constexpr size_t kHugePageBytes = 2 * kMiB;
constexpr size_t kDeviceAlignment = 256, kPinnedAlignment = 4 * kKiB;

/// `alignment` is a power of two, at most a page.
Result<std::byte*> RawAllocate(size_t bytes, size_t alignment) {
  void* data = nullptr;
  if (bytes >= kMapBytes) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) data = nullptr;
    // 512 times fewer page faults on first touch; a kernel that has no huge pages to give ignores it.
    if (data && bytes >= kHugePageBytes) madvise(data, bytes, MADV_HUGEPAGE);
  } else if (posix_memalign(&data, alignment, bytes) != 0) {
    data = nullptr;
  }
  if (!data) return Fail(Busy("out of host memory: " + std::to_string(bytes) + " bytes wanted", 100));
  return static_cast<std::byte*>(data);
}

void RawFree(std::byte* data, size_t bytes) {
  if (bytes >= kMapBytes) {
    munmap(data, bytes);
  } else {
    std::free(data);
  }
}

/// "model name" of the first processor.
std::string ProcessorName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

/// A lane's thread and the workers, for the loops of host kernels.
class LaneTeam final : public Team {
 public:
  explicit LaneTeam(WorkerPool* pool) : pool_(pool) {}
  int threads() const override { return pool_->threads() + 1; }

 private:
  void Share(int64_t items, int64_t grain, const Pieces& body) override {
    pool_->ParallelFor(items, grain, body);
  }
  WorkerPool* const pool_;
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  size_t bytes;
  bool shared = false;  ///< with a process that may take the memory away
};

Status Run(WorkerPool& pool, const Copy& copy) {
  std::atomic<bool> gone{false};
  pool.ParallelFor(static_cast<int64_t>(copy.bytes), kCopyPieceBytes, [&](int64_t begin, int64_t end) {
    const auto bytes = static_cast<size_t>(end - begin);
    if (!copy.shared) {
      std::memcpy(copy.to + begin, copy.from + begin, bytes);
    } else if (!gone && !GuardedCopy(copy.to + begin, copy.from + begin, bytes)) {
      gone = true;
    }
  });
  if (!gone) return {};
  return RegionShrunk("pages of the region were not there: its shared memory was made smaller, or is full");
}

Status Run(WorkerPool& pool, const Work& work) {
  LaneTeam team(&pool);
  work.problem->RunHost(work.step, work.buffers, team);
  return {};
}

/// A thread (or a helper) takes submissions from a FIFO and shares each with the pool.
class CpuLane final : public Lane {
 public:
  explicit CpuLane(WorkerPool* pool)
      : pool_(pool), thread_([this] { turns_.Run([this](Submission& s) { ServeOne(s); }); }) {
    pthread_setname_np(thread_.native_handle(), "tw-cpu-lane");
  }
  /// Callbacks that run meanwhile may submit more; that too is done before it returns.
  ~CpuLane() override {
    turns_.Stop();
    thread_.join();
  }

  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    Submit({Copy{device, host, bytes}, std::move(done)});
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    Submit({Copy{host, device, bytes}, std::move(done)});
  }
  void CopyInShared(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    Submit({Copy{device, host, bytes, true}, std::move(done)});
  }
  void CopyOutShared(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    Submit({Copy{host, device, bytes, true}, std::move(done)});
  }
  void Launch(const Work& work, OnComplete done) override { Submit({work, std::move(done)}); }
  void AnnounceHelp() override { turns_.Announce(); }
  void Help(std::chrono::microseconds budget) override {
    const auto ready = [](const Submission&, TimePoint until) { return Clock::now() < until; };
    turns_.Help(Clock::now() + budget, ready, [this](Submission& s) { ServeOne(s); });
  }
  void WithdrawHelp() override { turns_.Withdraw(); }
  uint64_t wakes() const override { return turns_.wakes(); }

 private:
  struct Submission {
    std::variant<Copy, Work> what;
    OnComplete done;
  };

  void Submit(Submission submission) {
    turns_.Push([&](bool) { return std::move(submission); });
  }

  void ServeOne(Submission& submission) {
    Completion completion;
    completion.begin = Clock::now();
    completion.status = std::visit([this](const auto& what) { return Run(*pool_, what); }, submission.what);
    completion.end = Clock::now();
    submission.done(completion);
  }

  WorkerPool* const pool_;
  LaneTurns<Submission> turns_;
  std::thread thread_;  ///< last: it uses all the others
};

class CpuDevice final : public Device {
 public:
  /// The thread of a lane is one of the `threads`.
  explicit CpuDevice(int threads) : workers_(threads - 1) {
    facts_.id = "cpu";
    facts_.name = ProcessorName();
    facts_.memory_bytes = UsableMemoryBytes();
    facts_.processors = threads;
    facts_.host_memory = true;
  }

  const DeviceFacts& facts() const override { return facts_; }
  int64_t FreeBytes() const override {
    const int64_t free = UsableMemoryBytes() + device_memory_.cached_bytes();
    const int64_t cap = device_memory_.cap_bytes();
    return cap > 0 ? std::clamp<int64_t>(cap - device_memory_.leased_bytes(), 0, free) : free;
  }
  void SetDeviceBudget(int64_t bytes) override { device_memory_.SetCap(bytes); }
  void SetPinnedBudget(int64_t bytes) override { pinned_memory_.SetCap(bytes); }
  int64_t cached_bytes() const override { return device_memory_.cached_bytes(); }
  Result<Memory> AllocateDevice(size_t bytes) override { return device_memory_.Allocate(bytes); }
  Result<Memory> AllocatePinned(size_t bytes) override { return pinned_memory_.Allocate(bytes); }
  // All memory is as fast as any.
  Result<Memory> PinHost(std::byte* data, size_t bytes, bool) override {
    return Memory(data, bytes, nullptr);
  }
  Result<Memory> OpenShared(std::string_view) override {
    return Fail(Status(Code::kFailedPrecondition, "REGION_UNPINNABLE",
                       "this server computes on its CPU, which has no memory that another process could "
                       "export by handle; register POSIX shared memory"));
  }
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority) override {
    return std::make_unique<CpuLane>(&workers_);
  }
  // Host code is no GPU kernel: it has neither launches nor registers to tell of.
  Result<std::vector<KernelInfo>> DescribeWork(const Work&) override { return {}; }
  Result<std::vector<LadderKernel>> DescribeLadder() override { return {}; }
  Status health() const override { return {}; }

 private:
  DeviceFacts facts_;
  MemoryPool device_memory_{[](size_t bytes) { return RawAllocate(bytes, kDeviceAlignment); }, RawFree, 0};
  MemoryPool pinned_memory_{[](size_t bytes) { return RawAllocate(bytes, kPinnedAlignment); }, RawFree, 0};
  WorkerPool workers_;
};

}  // namespace

std::unique_ptr<Lane> MakeHostLane() {
  static WorkerPool nobody(0);
  return std::make_unique<CpuLane>(&nobody);
}

std::unique_ptr<Device> OpenCpuDevice(int threads) {
  return std::make_unique<CpuDevice>(threads > 0 ? threads : DefaultCpuThreads());
}

}  // namespace tilewire::engine

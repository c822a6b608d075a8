// Owns a device, its lanes, its memory budgets and the jobs that run on it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/base/executor.h"
#include "server/base/limits.h"
#include "server/base/mutex.h"
#include "server/base/stats.h"
#include "server/base/timer.h"
#include "server/engine/admission/admission.h"
#include "server/engine/admission/leaser.h"
#include "server/engine/admission/planner.h"
#include "server/engine/device/device.h"
#include "server/engine/job/job.h"
#include "server/engine/measure/copy_rates.h"
#include "server/engine/measure/leased_ceilings.h"
#include "server/engine/operation/introspection.h"
#include "server/engine/operation/operation.h"
#include "server/engine/stores/array_store.h"
#include "server/engine/stores/region_store.h"

namespace tilewire::engine {

struct EngineOptions {
  int lanes = 4;        ///< of bulk jobs
  int small_lanes = 1;  ///< of small ones; each serves one of them at a time, its reply included
  /// Jobs whose operands are sent and have no more bytes than this all together are computed by the host
  /// where the device could only reach them over the bus: the same bits in less time than a launch takes. 0:
  /// none.
  int64_t host_bytes = 0;
  int64_t block_bytes = 4 << 20;  ///< of one block, or of the largest
  bool fit_blocks = false;        ///< smaller blocks for arrays of few, see BlockFor()
  bool measure_copies = false;    ///< at the start, some milliseconds
  bool overlap = true;
  int64_t device_bytes = 0;  ///< budget; 0: 80% of what is free
  int64_t pinned_bytes = 0;  ///< budget; not used where device memory is host memory
  int max_in_flight = 64;
  int queue_length = 256;
  double queue_seconds = 10;
  /// Of each owner of jobs; 0: no bound of his own.
  int max_in_flight_per_identity = 0, queue_length_per_identity = 0;
  int shared_in_flight = 0;  ///< AdmissionLimits
  Rates rates;
  int max_streams = kDefaultMaxStreams;  ///< of one job
  /// Staging blocks of one operand or of the result beside the one that each stream fills: one being copied,
  /// one to spare. Every stream may hold one that is half full, so with fewer they could wait for each other;
  /// more keep copies going where those who fill and empty blocks are slow to wake.
  int spare_blocks = 2;
  StoreLimits store;
  RegionLimits regions;
  /// Those of the catalogue of kernels; outlive the engine.
  std::span<const Descriptor* const> operations;
  TimeSource* time = SteadyTime();  ///< for bounds, deadlines and times to live; outlives the engine
};

/// What everybody is told once the device has failed.
Status DeviceGone();

/// Thread-safe. Outlives its jobs: destroy it only when every call has ended. The destructor waits for output
/// that is still held.
class Engine {
 public:
  using OnOpened = std::function<void(Result<std::shared_ptr<Job>>)>;
  using OpenId = Admission::Id;

  /// Makes the lanes. Fails as Device::MakeLane does.
  static Result<std::unique_ptr<Engine>> Make(std::unique_ptr<Device> device, const EngineOptions& options);
  ~Engine();

  /// Charges its owner, then admits a job: RESOURCE_EXHAUSTED `LIMIT` or `BUSY`, DEADLINE_EXCEEDED,
  /// UNAVAILABLE when draining or failed; what ArrayStore::Reserve says where the result is to be stored;
  /// INVALID_ARGUMENT where a region does not hold what it is to. Calls `on_opened` exactly once, perhaps
  /// before it returns (then the id is 0). The job fails at options.deadline. One that `lands` is opened with
  /// an order alone; it fails with the same reasons, BUSY among them, where it gets no memory after all.
  OpenId Open(OperationPtr operation, JobOptions options, OnOpened on_opened);
  /// The caller no longer wants it: if it still waits to be opened, `on_opened` gets `why`.
  void CancelOpen(OpenId id, const Status& why) { admission_.Cancel(id, why); }
  /// The job of that id, for another stream of its owner. FAILED_PRECONDITION `WRONG_INSTANCE`: an id of
  /// another server; NOT_FOUND `JOB`: none of this identity's jobs that still run.
  Result<std::shared_ptr<Job>> Find(const std::string& job, const std::string& identity);
  /// Refuses everything that waits and every later Open with `why`; running jobs go on.
  void Close(const Status& why) { admission_.Close(why); }
  /// Whether a job waits to be admitted.
  bool AnybodyWaits() const { return admission_.AnybodyWaits(); }

  /// The launches of an operation (`text` tells it to people), or, with null, the catalogue; see
  /// Introspection. Needs no admission: nothing is launched or leased. UNAVAILABLE when the device has
  /// failed.
  void DescribeKernels(std::unique_ptr<Operation> operation, std::string text,
                       Introspection::OnKernels on_kernels);

  /// Measures the machine's limits, see MeasureCeilings(): admitted like a bulk job, for the memory it needs.
  /// Refused `BUSY` at once while another measurement runs, else as Open() is; INTERNAL `DEVICE_FAILED` when
  /// the device is gone. Calls `on_measured` exactly once.
  void MeasureCeilings(CeilingMeter::OnMeasured on_measured) { ceilings_.Measure(std::move(on_measured)); }

  /// The arrays that stay on the device.
  ArrayStore& arrays() { return arrays_; }
  /// Memory of clients that jobs read and write.
  RegionStore& regions() { return regions_; }

  /// Drops a reference soon, on a thread that may enqueue device work.
  void DropSoon(std::shared_ptr<const void> hold);
  Timer& timer() { return timer_; }

  const DeviceFacts& facts() const { return device_->facts(); }
  const EngineOptions& options() const { return options_; }
  /// As measured when the engine was made; zeros when not.
  const CopyRates& copy_rates() const { return copy_rates_; }
  const std::string& instance() const { return instance_; }
  EngineStats stats() const;
  /// Called once, when the device has failed for good, after every job was told. Set before the first Open.
  void SetFailureHandler(std::function<void(const Status&)> handler) { on_failure_ = std::move(handler); }

 private:
  Engine(std::unique_ptr<Device> device, const EngineOptions& options);
  /// A lane of small jobs, and how many of them are on it.
  struct SmallLane {
    JobContext context;
    std::atomic<int> jobs{0};
  };
  using SmallLanes = std::vector<std::unique_ptr<SmallLane>>;
  Status MakeLanes();
  void AddSmallLane(std::unique_ptr<Lane> lane, SmallLanes* to);
  /// Of the device or of the host; null for bulk jobs.
  SmallLane* TakeLane(const JobLayout& layout);
  Result<Places> Prepare(OperationPtr* operation, JobOptions* options);
  /// What Open() was asked for and has planned.
  struct Opening {
    OperationPtr operation;
    JobOptions options;
    JobPlan plan;     ///< its shape is the job's then
    std::string why;  ///< it could not run windowed
    TimePoint asked;
  };
  /// Where it may have to wait: for memory, or first for an order.
  OpenId Ask(Demand demand, TimePoint deadline, Opening wanted, bool orders, OnOpened on_opened);
  Result<std::shared_ptr<Job>> Admitted(Opening& opening, Result<Ticket> ticket);
  /// A job that has an order, and gets its memory when it lands.
  Result<std::shared_ptr<Job>> Ordered(const std::shared_ptr<Opening>& opening, Result<Order> order);
  Result<std::shared_ptr<Job>> MakeJob(Opening& opening);
  /// Leases what was planned.
  Status Begin(Job& job, const JobPlan& plan, Ticket ticket);
  JobContext ContextOn(std::vector<Lane*> lanes);
  void DeviceFailed();

  const std::unique_ptr<Device> device_;
  Introspection introspection_;
  const EngineOptions options_;
  const std::string instance_;
  CopyRates copy_rates_;
  Timer timer_;
  Admission admission_;
  Planner planner_;
  const Leaser leaser_;
  LeasedCeilings ceilings_;
  ArrayStore arrays_;
  RegionStore regions_;
  JobContext bulk_;
  SmallLanes small_, on_host_;
  std::function<void(const Status&)> on_failure_;
  std::atomic<uint64_t> blocks_{0}, bytes_in_{0}, bytes_out_{0}, ranges_{0}, bytes_copied_{0}, windowed_{0},
      on_host_jobs_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  CondVar jobs_gone_;
  int jobs_alive_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< jobs whose memory and ticket are not back yet
  std::map<std::string, std::weak_ptr<Job>> jobs_ TILEWIRE_GUARDED_BY(mutex_);
  // These use all of the above.
  SerialThread admitter_{"tw-admit"};  ///< starts the jobs that had to wait
  SerialThread dropper_{"tw-drop"};    ///< DropSoon
  // Last, so that it is destroyed first: a lane waits for its submissions, whose callbacks use all of the
  // above.
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tilewire::engine

#include "server/engine/engine.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "server/engine/stores/random_id.h"

namespace tilewire::engine {
namespace {

EngineOptions WithDefaults(EngineOptions options, const Device& device) {
  if (options.device_bytes <= 0) options.device_bytes = device.FreeBytes() / 10 * 8;
  if (device.facts().host_memory) options.pinned_bytes = 0;
  return options;
}

/// A refusal for good of a job that could not run windowed either, for the reason `why`.
Status Explained(Status refusal, const std::string& why) {
  if (why.empty() || refusal.reason() != "LIMIT") return refusal;
  Status::Detail detail = *refusal.detail();
  detail.message += "; it cannot be computed part by part either: " + why;
  return Status(std::move(detail));
}

Status Gone() {
  return Status(Code::kUnavailable, "DEVICE_FAILED", "the device has failed; the server is going down");
}

/// What it reads and writes.
int64_t ArrayBytes(const Operation& operation) {
  int64_t bytes = operation.result_bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Make(std::unique_ptr<Device> device, const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(std::move(device), options));
  TILEWIRE_RETURN_IF_ERROR(engine->MakeLanes());
  return engine;
}

Engine::Engine(std::unique_ptr<Device> device, const EngineOptions& options)
    : device_(std::move(device)),
      introspection_(device_.get(), options.operations),
      options_(WithDefaults(options, *device_)),
      instance_(RandomHex()),
      timer_(options_.time),
      admission_({.device_bytes = options_.device_bytes,
                  .pinned_bytes = options_.pinned_bytes,
                  .max_in_flight = options_.max_in_flight,
                  .queue_length = options_.queue_length,
                  .queue_seconds = options_.queue_seconds,
                  .max_in_flight_per_identity = options_.max_in_flight_per_identity,
                  .queue_length_per_identity = options_.queue_length_per_identity,
                  .shared_in_flight = options_.shared_in_flight,
                  .rates = options_.rates},
                 &timer_, &admitter_),
      planner_({.lanes = options_.lanes,
                .max_streams = options_.max_streams,
                .spare_blocks = options_.spare_blocks,
                .block = {.bytes = options_.block_bytes, .fit = options_.fit_blocks},
                .bulk_device_bytes = admission_.bulk_device_bytes(),
                .pinned_bytes = options_.pinned_bytes,
                .host_memory = device_->facts().host_memory,
                .kernels_reach_pinned = device_->facts().kernels_reach_pinned}),
      leaser_(device_.get()),
      ceilings_(device_.get(), &admission_, options_.time, options_.device_bytes, options_.pinned_bytes,
                [this] { DeviceFailed(); }),
      arrays_(instance_, CompleteLimits(options_.store, admission_.bulk_device_bytes() / 2), &timer_,
              [this] {
                if (admission_.BulkWaits()) admission_.Retry();
              }),
      regions_(instance_, options_.regions, device_.get(), &timer_) {
  admission_.SetReclaim([this](int64_t bytes) { return arrays_.Reclaim(bytes); });
  device_->SetDeviceBudget(options_.device_bytes);
  device_->SetPinnedBudget(options_.pinned_bytes);
}

Engine::~Engine() {
  {
    // Output may still lie in send buffers of calls that have ended; its last holder comes back through
    // DropSoon(), and a job's end needs lanes, admission and registry.
    const MutexLock lock(mutex_);
    while (jobs_alive_ > 0) jobs_gone_.Wait(mutex_);
  }
  arrays_.Close(Gone());
  regions_.Close(Gone());
  // A queue bound or the end of an array or region that came too late to be cancelled may still be on its
  // way.
  std::promise<void> passed;
  timer_.At(timer_.Now(), [&passed] { passed.set_value(); });
  passed.get_future().wait();
  lanes_.clear();
}

// --- jobs -----------------------------------------------------------------------------------------

/// Room for the results where they are to be stored; or the operation becomes the passing on of the arrays
/// that were stored with the same key before. What needs no input is computed in one piece.
Result<Places> Engine::Prepare(std::unique_ptr<Operation>* operation, JobOptions* options) {
  std::shared_ptr<Reservation> room;
  if (options->store) {
    TILEWIRE_ASSIGN_OR_RETURN(
        Reservation reserved,
        arrays_.Reserve(options->identity, (*operation)->results(), *options->store, options->own_arrays));
    room = std::make_shared<Reservation>(std::move(reserved));
    if (const auto& existing = room->existing(); !existing.empty()) {
      std::vector<ArraySpec> specs;
      for (const ArrayUse& array : existing) specs.push_back(array->spec());
      *operation = MakePass(std::move(specs), (*operation)->name(), (*operation)->numeric_version());
      options->residents = {existing.front()};
      options->regions.clear();
    }
  }
  const size_t operands = (*operation)->operands().size();
  options->residents.resize(operands);
  options->regions.resize(operands);
  TILEWIRE_RETURN_IF_ERROR(CheckPlaces(**operation, *options));
  Places places = MakePlaces(**operation, std::move(room), options);
  if (places.all_there())
    if (auto whole = (*operation)->Whole()) *operation = std::move(whole);
  return places;
}

Engine::OpenId Engine::Open(std::unique_ptr<Operation> operation, const JobOptions& wanted,
                            OnOpened on_opened) {
  JobOptions options = wanted;
  if (options.share.empty()) options.share = options.identity;
  if (Status status = admission_.Charge(options.share, ArrayBytes(*operation), options.own.rates);
      !status.ok()) {
    on_opened(Fail(std::move(status)));
    return 0;
  }
  auto places = Prepare(&operation, &options);
  if (!places) {
    on_opened(Fail(std::move(places).error()));
    return 0;
  }
  std::string why;
  JobPlan plan = planner_.Plan(&operation, options, *std::move(places), &why);
  Demand demand = plan.memory.demand();
  demand.owner = options.share;
  demand.own = options.own;
  // std::function wants copyable state.
  auto owned = std::make_shared<std::unique_ptr<Operation>>(std::move(operation));
  // True for as long as this call lasts; looked at by its thread alone.
  const auto asking_now = std::make_shared<bool>(true);
  const auto id = admission_.Request(
      demand, options.deadline,
      [this, owned, options, plan = std::move(plan), why = std::move(why), asked = Clock::now(), asking_now,
       asking = std::this_thread::get_id(), on_opened = std::move(on_opened)](Result<Ticket> ticket) mutable {
        // After a wait the caller comes back to it later, if it was this thread that decided too.
        options.helped = options.helped && asking == std::this_thread::get_id() && *asking_now;
        if (!ticket) return on_opened(Fail(Explained(std::move(ticket).error(), why)));
        const TimePoint granted = Clock::now();
        auto job = Start(std::move(*owned), options, std::move(plan), *std::move(ticket));
        if (job) (*job)->AddSpan({Stage::kQueue, asked, granted});
        on_opened(std::move(job));
      });
  *asking_now = false;
  return id;
}

Result<std::shared_ptr<Job>> Engine::Start(std::unique_ptr<Operation> operation, const JobOptions& options,
                                           JobPlan plan, Ticket ticket) {
  if (failed_.load()) return Fail(Gone());
  const bool small = plan.layout.small, windowed = plan.layout.ring.slots > 0;
  JobResources resources{.ticket = std::move(ticket)};
  if (Status status = leaser_.Lease(*operation, std::move(plan), &resources); !status.ok()) {
    if (device_->health().ok()) return Fail(std::move(status));
    DeviceFailed();  // an idle server notices here first
    return Fail(Gone());
  }
  if (windowed) windowed_.fetch_add(1, std::memory_order_relaxed);
  const std::string id = instance_ + "-" + RandomHex();  // not to be guessed
  // The registry lets a device failure reach every job; entries go with their job.
  SmallLane* const lane = small ? TakeSmallLane() : nullptr;
  std::shared_ptr<Job> job(
      new Job(id, std::move(operation), options, lane ? &lane->context : &bulk_, std::move(resources)),
      [this, lane](Job* dead) {
        {
          MutexLock lock(mutex_);
          jobs_.erase(dead->id());
        }
        delete dead;
        if (lane) lane->jobs.fetch_sub(1, std::memory_order_relaxed);
        MutexLock lock(mutex_);
        if (--jobs_alive_ == 0) jobs_gone_.NotifyAll();
      });
  {
    MutexLock lock(mutex_);
    jobs_.emplace(id, job);
    ++jobs_alive_;
  }
  if (failed_.load()) return Fail(Gone());  // meanwhile: the registry may have been gone through before
  if (options.deadline != TimePoint::max())
    job->SetDeadlineTimer(timer_.At(options.deadline,
                                    [weak = std::weak_ptr(job)] {
                                      if (const auto late = weak.lock())
                                        late->Fail(Status(Code::kDeadlineExceeded, "DEADLINE",
                                                          "the deadline passed while the job was running"));
                                    }),
                          &timer_);
  job->Begin();
  return job;
}

Result<std::shared_ptr<Job>> Engine::Find(const std::string& job, const std::string& identity) {
  if (!job.starts_with(instance_ + "-"))
    return Fail(Status({.code = Code::kFailedPrecondition,
                        .reason = "WRONG_INSTANCE",
                        .message = "job " + job + " is not of this server; join at one of Opened.endpoints",
                        .field = "join.job",
                        .value = job,
                        .allowed = instance_ + "-*",
                        .unlogged = true}));
  // Outlives the lock: were it the last reference, the job's end would want it too.
  std::shared_ptr<Job> alive;
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) alive = found->second.lock();
  if (alive && alive->identity() == identity) return alive;
  return Fail(Status({.code = Code::kNotFound,
                      .reason = "JOB",
                      .message = "no job " + job + " of yours is running",
                      .field = "join.job",
                      .value = job,
                      .allowed = "Opened.job of a job that still runs",
                      .unlogged = true}));
}

void Engine::DescribeKernels(std::unique_ptr<Operation> operation, std::string text,
                             Introspection::OnKernels on_kernels) {
  auto answer = [this, on_kernels = std::move(on_kernels)](Result<std::vector<KernelLaunch>> kernels) {
    if (!kernels && !device_->health().ok()) {
      DeviceFailed();  // an idle server may notice here first
      kernels = Fail(Gone());
    }
    on_kernels(std::move(kernels));
  };
  if (!operation) return introspection_.DescribeCatalogue(std::move(answer));
  introspection_.Describe(std::move(operation), std::move(text), std::move(answer));
}

// --- life -----------------------------------------------------------------------------------------

void Engine::DropSoon(std::shared_ptr<const void> hold) {
  dropper_.Post([hold = std::move(hold)]() mutable { hold.reset(); });
}

void Engine::DeviceFailed() {
  if (failed_.exchange(true)) return;
  const Status gone = Gone();
  admission_.Close(gone);
  arrays_.Close(gone);
  regions_.Close(gone);
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, weak] : jobs_)
      if (auto job = weak.lock()) jobs.push_back(std::move(job));
  }
  const Status lost(Code::kInternal, "DEVICE_FAILED", "the device failed while the job was running on it");
  for (const auto& job : jobs) job->Fail(job->launched() ? lost : gone);
  if (on_failure_) on_failure_(device_->health());
}

EngineStats Engine::stats() const {
  EngineStats stats;
  admission_.Snapshot(&stats);
  arrays_.Snapshot(&stats);
  regions_.Snapshot(&stats);
  stats.device_bytes_cached = static_cast<uint64_t>(device_->cached_bytes());
  stats.blocks_copied = blocks_.load(std::memory_order_relaxed);
  stats.bytes_copied_in = bytes_in_.load(std::memory_order_relaxed);
  stats.bytes_copied_out = bytes_out_.load(std::memory_order_relaxed);
  stats.jobs_windowed = windowed_.load(std::memory_order_relaxed);
  stats.ranges_computed = ranges_.load(std::memory_order_relaxed);
  stats.bytes_copied_by_cpu = bytes_copied_.load(std::memory_order_relaxed);
  stats.device_failed = failed_.load();
  return stats;
}

}  // namespace tilewire::engine

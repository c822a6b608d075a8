#include "server/engine/engine.h"

#include <algorithm>
#include <future>
#include <utility>

#include "server/engine/stores/random_id.h"

namespace tilewire::engine {
namespace {

EngineOptions WithDefaults(EngineOptions options, const Device& device) {
  if (options.device_bytes <= 0) options.device_bytes = device.FreeBytes() / 10 * 8;
  if (device.facts().host_memory) options.pinned_bytes = 0;
  return options;
}

}  // namespace

Status DeviceGone() {
  return Status(Code::kUnavailable, "DEVICE_FAILED", "the device has failed; the server is going down");
}

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
                .kernels_reach_pinned = device_->facts().kernels_reach_pinned,
                .host_bytes = options_.host_bytes}),
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
  arrays_.Close(DeviceGone());
  regions_.Close(DeviceGone());
  // A queue bound or the end of an array or region that came too late to be cancelled may still be on its
  // way.
  std::promise<void> passed;
  timer_.At(timer_.Now(), [&passed] { passed.set_value(); });
  passed.get_future().wait();
  lanes_.clear();
}

// --- jobs -----------------------------------------------------------------------------------------

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
      kernels = Fail(DeviceGone());
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
  const Status gone = DeviceGone();
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
  stats.jobs_on_host = on_host_jobs_.load(std::memory_order_relaxed);
  stats.ranges_computed = ranges_.load(std::memory_order_relaxed);
  stats.bytes_copied_by_cpu = bytes_copied_.load(std::memory_order_relaxed);
  stats.device_failed = failed_.load();
  return stats;
}

}  // namespace tilewire::engine

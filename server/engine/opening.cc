// From what a caller wants to a job that runs: planned, admitted, leased.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/stores/random_id.h"

namespace tilewire::engine {
namespace {

/// A refusal for good of a job that could not run windowed either, for the reason `why`.
Status Explained(Status refusal, const std::string& why) {
  if (why.empty() || refusal.reason() != "LIMIT") return refusal;
  Status::Detail detail = *refusal.detail();
  detail.message += "; it cannot be computed part by part either: " + why;
  return Status(std::move(detail));
}

/// What it reads and writes.
int64_t ArrayBytes(const Operation& operation) {
  int64_t bytes = operation.result_bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes;
}

}  // namespace

/// Room for the results where they are to be stored; or the operation becomes the passing on of the arrays
/// that were stored with the same key before. What needs no input is computed in one piece.
Result<Places> Engine::Prepare(OperationPtr* operation, JobOptions* options) {
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

Engine::OpenId Engine::Open(OperationPtr operation, JobOptions options, OnOpened on_opened) {
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
  const bool orders = options.lands && plan.layout.places.streamed() > 0;
  const TimePoint deadline = options.deadline;
  Opening opening{std::move(operation), std::move(options), std::move(plan), std::move(why), Clock::now()};
  if (!orders) {
    if (auto ticket = admission_.AtOnce(&demand)) {
      on_opened(Admitted(opening, *std::move(ticket)));
      return 0;
    }
  }
  return Ask(std::move(demand), deadline, std::move(opening), orders, std::move(on_opened));
}

Engine::OpenId Engine::Ask(Demand demand, TimePoint deadline, Opening wanted, bool orders,
                           OnOpened on_opened) {
  const auto opening =
      std::make_shared<Opening>(std::move(wanted));  // std::function wants its state copyable
  if (orders)
    return admission_.RequestOrder(std::move(demand), deadline,
                                   [this, opening, on_opened = std::move(on_opened)](Result<Order> order) {
                                     on_opened(Ordered(opening, std::move(order)));
                                   });
  // True for as long as this call lasts; looked at by its thread alone.
  const auto asking_now = std::make_shared<bool>(true);
  const auto id = admission_.Request(std::move(demand), deadline,
                                     [this, opening, asking_now, asking = std::this_thread::get_id(),
                                      on_opened = std::move(on_opened)](Result<Ticket> ticket) {
                                       // After a wait the caller comes back to it later, if it was this
                                       // thread that decided too.
                                       const bool at_once =
                                           asking == std::this_thread::get_id() && *asking_now;
                                       opening->options.helped = opening->options.helped && at_once;
                                       on_opened(Admitted(*opening, std::move(ticket)));
                                     });
  *asking_now = false;
  return id;
}

Result<std::shared_ptr<Job>> Engine::Admitted(Opening& opening, Result<Ticket> ticket) {
  if (!ticket) return Fail(Explained(std::move(ticket).error(), opening.why));
  const TimePoint granted = Clock::now();
  TILEWIRE_ASSIGN_OR_RETURN(std::shared_ptr<Job> job, MakeJob(opening));
  TILEWIRE_RETURN_IF_ERROR(Begin(*job, opening.plan, *std::move(ticket)));
  job->AddSpan({Stage::kQueue, opening.asked, granted});
  return job;
}

Result<std::shared_ptr<Job>> Engine::Ordered(const std::shared_ptr<Opening>& opening, Result<Order> order) {
  if (!order) return Fail(Explained(std::move(order).error(), opening->why));
  TILEWIRE_ASSIGN_OR_RETURN(std::shared_ptr<Job> job, MakeJob(*opening));
  job->AddSpan({Stage::kQueue, opening->asked, Clock::now()});
  job->AwaitLanding(*std::move(order), [this, weak = std::weak_ptr(job), opening](Result<Ticket> ticket) {
    const auto alive = weak.lock();
    if (!alive) return;
    const Status status = ticket ? Begin(*alive, opening->plan, *std::move(ticket)) : ticket.error();
    if (!status.ok()) alive->Fail(status);
  });
  return job;
}

Result<std::shared_ptr<Job>> Engine::MakeJob(Opening& opening) {
  if (failed_.load()) return Fail(DeviceGone());
  const JobOptions& options = opening.options;
  const std::string id = instance_ + "-" + RandomHex();  // not to be guessed
  // The registry lets a device failure reach every job; entries go with their job.
  SmallLane* const lane = TakeLane(opening.plan.layout);
  std::shared_ptr<Job> job(
      new Job(id, opening.operation, options, lane ? &lane->context : &bulk_, opening.plan.TakeShape()),
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
  if (failed_.load()) return Fail(DeviceGone());  // meanwhile: the registry may have been gone through before
  if (options.deadline != TimePoint::max())
    job->SetDeadlineTimer(timer_.At(options.deadline,
                                    [weak = std::weak_ptr(job)] {
                                      if (const auto late = weak.lock())
                                        late->Fail(Status(Code::kDeadlineExceeded, "DEADLINE",
                                                          "the deadline passed while the job was running"));
                                    }),
                          &timer_);
  return job;
}

Status Engine::Begin(Job& job, const JobPlan& plan, Ticket ticket) {
  if (failed_.load()) return DeviceGone();
  JobMemory memory{.ticket = std::move(ticket)};
  if (Status status = leaser_.Lease(job, plan.memory, &memory); !status.ok()) {
    if (device_->health().ok()) return status;
    DeviceFailed();  // an idle server notices here first
    return DeviceGone();
  }
  if (plan.layout.ring.slots > 0) windowed_.fetch_add(1, std::memory_order_relaxed);
  if (plan.layout.on_host) on_host_jobs_.fetch_add(1, std::memory_order_relaxed);
  job.Begin(std::move(memory));
  return {};
}

}  // namespace tilewire::engine

// Kernels of a job: launched as soon as the blocks that they read are there, on lanes of their own where a
// device copies by itself.
#include <span>
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {
namespace {
/// How long the thread that noticed a copy waits for the kernels that it launched: longer than most take, and
/// shorter than the copies behind it.
constexpr std::chrono::microseconds kAwaitKernel{50};
}  // namespace

void Job::BlockArrivedLocked(int64_t index, Deferred* later) {
  const Ranges::Span complete = ranges_.BlockArrived(index);
  if (!complete.empty()) later->awaits_kernels = HasStageLanes();
  for (int64_t range = complete.begin; range < complete.end; ++range) LaunchRangeLocked(range, later);
}

std::span<Lane* const> Job::KernelLanes() const {
  return {context_->lanes.data() + 1, lanes_ - 2};
}

/// What a copy's completion launched takes some microseconds, less than to wake a lane's thread for it: the
/// thread that is awake already waits for it, and starts the copy out. Help was announced to these lanes.
void Job::AwaitKernels(std::span<Lane* const> lanes) {
  if (lanes.empty()) return;
  const TimePoint until = Clock::now() + kAwaitKernel;
  for (Lane* lane : lanes) {
    lane->Help(std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()));
    lane->WithdrawHelp();
  }
}

/// On a device with memory of its own, copies in have the first lane, copies out the last, kernels those
/// between: a piece of work that waited on a stream behind another stage's would keep its engine idle, and
/// copies one way on several streams at once are slower than one after the other. Two lanes are too few for
/// that. Where lanes copy with the CPU, several copy faster.
int Job::LaneFor(Stage stage) {
  uint32_t lane = 0;
  if (!HasStageLanes()) {
    lane = next_lane_++ % lanes_;
  } else if (stage != Stage::kH2D) {
    lane = stage == Stage::kD2H ? lanes_ - 1 : 1 + next_lane_++ % (lanes_ - 2);
  }
  lanes_used_ |= uint64_t{1} << lane;
  return static_cast<int>(lane);
}

uint64_t Job::RangeBytes(int64_t range) const {
  const ByteInterval bytes = operation_->range_bytes(range);
  return static_cast<uint64_t>(bytes.end - bytes.begin) * operation_->operands().size();
}

void Job::LaunchRangeLocked(int64_t range, Deferred* later) {
  if (operation_->result_is_operand()) return RangeDoneLocked(range, later);
  const int lane = LaneFor(Stage::kKernel);
  launched_ = true;
  const Span span{.stage = Stage::kKernel,
                  .track = static_cast<uint32_t>(lane),
                  .index = static_cast<uint64_t>(range),
                  .bytes = RangeBytes(range)};
  submissions_.AddLaunch(context_->lanes[lane], {operation_.get(), {range}, BuffersOf(range)},
                         [self = shared_from_this(), range, span](const Completion& completion) {
                           Deferred after;
                           {
                             MutexLock lock(self->mutex_);
                             if (self->CompletedLocked(span, completion, &after) && !self->ordered_)
                               self->RangeDoneLocked(range, &after);
                           }
                           self->RunAll(&after);
                           self->ReportDeviceFailure(completion);
                         });
  if (ordered_) RangeDoneLocked(range, later);
}

void Job::RangeDoneLocked(int64_t range, Deferred* later) {
  if (!operation_->result_is_operand()) context_->count(0, 0, 0, 1);
  ranges_.Done(range);
  if (window_ && !ResultInRing()) {
    const ByteInterval bytes = operation_->range_bytes(range);
    LeaveLocked(range, bytes.end - bytes.begin, later);
  }
  if (operation_->ranges_fill_result()) {
    if (const int64_t bytes = ranges_.filled_bytes(); bytes > 0) ResultReadyLocked(bytes, later);
  } else if (ranges_.all_done()) {
    FinishLocked(later);
  }
}

void Job::FinishLocked(Deferred* later) {
  if (!operation_->has_finish()) return ResultReadyLocked(operation_->result_bytes(), later);
  const int lane = LaneFor(Stage::kKernel);
  const Span span{.stage = Stage::kKernel,
                  .track = static_cast<uint32_t>(lane),
                  .index = static_cast<uint64_t>(operation_->range_count())};
  submissions_.AddLaunch(
      context_->lanes[lane], {operation_.get(), Step::Finish(), memory_.buffers},
      [self = shared_from_this(), span](const Completion& completion) {
        Deferred after;
        {
          MutexLock lock(self->mutex_);
          if (self->CompletedLocked(span, completion, &after) && (!self->ordered_ || self->ResultWaits()))
            self->ResultReadyLocked(self->operation_->result_bytes(), &after);
        }
        self->RunAll(&after);
        self->ReportDeviceFailure(completion);
      });
  if (ordered_ && !ResultWaits()) ResultReadyLocked(operation_->result_bytes(), later);
}

}  // namespace tilewire::engine

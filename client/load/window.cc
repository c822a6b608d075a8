#include "client/load/window.h"

#include <algorithm>
#include <cmath>

namespace tilewire::load {
namespace {

/// Later than this a start is late: more than waking up takes.
constexpr double kLateSeconds = 1e-3;
/// A server is not lost by fewer failed calls than this.
constexpr uint64_t kLostCalls = 3;
/// Traced calls kept of an operation; from each further one the oldest goes.
constexpr size_t kTracesKept = 8;

double TotalOf(const std::vector<double>& weights) {
  double total = 0;
  for (const double weight : weights) total += weight;
  return total;
}

double StepFor(const LoadOptions& options) {
  const double seconds = options.seconds  ? *options.seconds
                         : options.stable ? options.stable->max_seconds
                                          : 60;
  return std::max(0.05, std::ceil(seconds / 500 * 20) / 20);
}

}  // namespace

Window::Window(const LoadOptions& options)
    : options_(options),
      origin_(LoadClock::now()),
      begin_(options.warmup_seconds),
      total_weight_(TotalOf(options.weights)),
      schedule_(options.arrivals, options.rate.value_or(1), options.seed),
      open_random_(options.seed, ~uint64_t{0}),
      last_end_(begin_),
      traced_(options.weights.size(), 0),
      slice_begin_(begin_) {
  result_.measured = Measured(options.weights.size());
  result_.measured.timeline = Timeline(StepFor(options));
  if (options.seconds) end_ = begin_ + *options.seconds;
  if (options.rate) next_due_ = schedule_.Next();
}

void Window::Acquire() const {
  constexpr int kTries = 200;
  for (int i = 0; i <= kTries; ++i)
    if (mutex_.TryLock()) return;
  mutex_.Lock();
}

LoadClock::time_point Window::At(double seconds) const {
  return origin_ + std::chrono::duration_cast<LoadClock::duration>(std::chrono::duration<double>(seconds));
}

double Window::Seconds(LoadClock::time_point at) const {
  return std::chrono::duration<double>(at - origin_).count();
}

double Window::Now() const {
  return Seconds(LoadClock::now());
}

Request Window::Draw(Random* random, uint32_t caller) {
  Request request{.caller = caller};
  double left = random->Uniform() * total_weight_;
  while (request.operation + 1 < options_.weights.size() && left >= options_.weights[request.operation])
    left -= options_.weights[request.operation++];
  request.input = static_cast<uint32_t>(random->Below(options_.inputs));
  // The first, second, fourth, eighth … call of an operation: a few spread over any window.
  const uint64_t number = ++traced_[request.operation];
  request.trace = (number & (number - 1)) == 0;
  return request;
}

std::optional<Start> Window::Next(uint32_t caller, Random* random) {
  return options_.rate ? NextOpen(caller) : NextClosed(caller, random);
}

std::optional<Start> Window::NextClosed(uint32_t caller, Random* random) {
  Acquire();
  const MutexLock lock(mutex_, std::adopt_lock);
  const double now = Now();
  if (stopped_ || (end_ && now >= *end_)) return std::nullopt;
  Start start;
  if (options_.requests && now >= begin_) {
    if (counted_starts_ >= *options_.requests) return std::nullopt;
    ++counted_starts_;
    start.counted = true;
  }
  start.request = Draw(random, caller);
  start.due = start.begin = LoadClock::now();
  return start;
}

std::optional<Start> Window::NextOpen(uint32_t caller) {
  Acquire();
  const MutexLock lock(mutex_, std::adopt_lock);
  if (stopped_ || (end_ && next_due_ >= *end_)) return std::nullopt;
  if (options_.requests && counted_starts_ >= *options_.requests) return std::nullopt;
  Start start;
  const double due = next_due_;
  start.due = At(due);
  start.counted = due >= begin_;
  if (start.counted) ++counted_starts_;
  start.request = Draw(&open_random_, caller);
  next_due_ = schedule_.Next();
  const bool waited = LoadClock::now() < start.due;
  while (!stopped_ && LoadClock::now() < start.due) wake_.WaitUntil(mutex_, start.due);
  if (stopped_ || (end_ && due >= *end_)) {
    if (start.counted) --counted_starts_;
    return std::nullopt;
  }
  start.begin = LoadClock::now();
  if (start.counted) {
    Punctuality& punctuality = result_.punctuality;
    const double late = Seconds(start.begin) - due;
    ++punctuality.starts;
    punctuality.max_late_us = std::max(punctuality.max_late_us, late * 1e6);
    if (late >= kLateSeconds) ++punctuality.late, punctuality.woke_late += waited;
  }
  return start;
}

void Window::Keep(const Start& start, const Answer& answer, double latency_us, double service_us,
                  double end) {
  Measured& measured = result_.measured;
  measured.operations[start.request.operation].Add(answer, latency_us, service_us);
  measured.timeline.Add(end - begin_, answer, latency_us);
  last_end_ = std::max(last_end_, end);
  if (answer.status.ok()) slice_.Add(latency_us);
  if (!start.request.trace || !answer.status.ok() || !answer.right || !answer.reply || !answer.reply->trace)
    return;
  auto& traces = measured.traces;
  const auto same = [&](const Traced& t) { return t.operation == start.request.operation; };
  if (static_cast<size_t>(std::count_if(traces.begin(), traces.end(), same)) >= kTracesKept)
    traces.erase(std::find_if(traces.begin(), traces.end(), same));
  traces.push_back({start.request.operation, latency_us, *answer.reply});
}

void Window::Ended(const Start& start, const Answer& answer) {
  const auto us = [&](LoadClock::time_point from) {
    return std::chrono::duration<double, std::micro>(answer.ended - from).count();
  };
  const double end = Seconds(answer.ended);
  Acquire();
  const MutexLock lock(mutex_, std::adopt_lock);
  if (stopped_ && answer.status.code() == Code::kCancelled) return;  // by us
  lost_ = lost_ || answer.lost;
  if (answer.status.code() != Code::kUnavailable) {
    // One that ended before and was checked until now says nothing about a server that is gone since.
    if (unavailable_since_ && end > *unavailable_since_) {
      unavailable_since_.reset();
      unavailable_ = 0;
    }
  } else {
    if (!unavailable_since_) unavailable_since_ = end;
    ++unavailable_;
  }
  const bool bad = !answer.status.ok() || !answer.right;
  bool counted = start.counted;
  if (!options_.rate && !options_.requests) {
    const bool late = end_ && end >= *end_;
    const bool longer = late && *end_ >= begin_ && end <= good_until_.value_or(end);
    counted = end >= begin_ && (!late || bad || longer);
    if (counted && !bad) good_until_ = std::max(good_until_.value_or(0), end);
  }
  if (counted) {
    result_.held_up_seconds += answer.held_up_seconds;
    return Keep(start, answer, us(options_.rate ? start.due : answer.began), us(answer.began), end);
  }
  if (answer.status.ok() && !answer.right) ++result_.outside_wrong;
  if (!answer.status.ok()) ++result_.outside_failed;
}

void Window::Pause(double seconds) {
  const MutexLock lock(mutex_);
  const LoadClock::time_point until = At(Now() + seconds);
  while (!stopped_ && LoadClock::now() < until) wake_.WaitUntil(mutex_, until);
}

void Window::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  wake_.NotifyAll();
}

void Window::Close() {
  const MutexLock lock(mutex_);
  end_ = Now();
  wake_.NotifyAll();
}

void Window::Abandon() {
  const MutexLock lock(mutex_);
  for (; end_ && next_due_ < *end_; next_due_ = schedule_.Next()) {
    if (next_due_ < begin_) continue;
    result_.measured.operations[Draw(&open_random_, 0).operation].AddError("NOT_STARTED", 1);
    ++result_.punctuality.never;
  }
  stopped_ = true;
  wake_.NotifyAll();
}

bool Window::exhausted() const {
  const MutexLock lock(mutex_);
  return options_.requests && counted_starts_ >= *options_.requests;
}

double Window::lost_seconds() const {
  const MutexLock lock(mutex_);
  return unavailable_since_ && unavailable_ >= kLostCalls ? Now() - *unavailable_since_ : 0;
}

bool Window::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

void Window::Snapshot(uint64_t* calls, uint64_t* errors) const {
  const MutexLock lock(mutex_);
  *calls = *errors = 0;
  for (const CallStats& stats : result_.measured.operations) {
    *calls += stats.calls();
    *errors += stats.failed + stats.wrong;
  }
}

std::pair<double, double> Window::Slice() {
  const MutexLock lock(mutex_);
  const double now = Now();
  const std::pair<double, double> slice{
      static_cast<double>(slice_.count()) / std::max(now - slice_begin_, 1e-9), slice_.Percentile(0.5)};
  slice_ = Histogram();
  slice_begin_ = now;
  return slice;
}

LoadResult Window::Take() const {
  const MutexLock lock(mutex_);
  LoadResult result = result_;
  // Closed loops are cut at the end, which leaves calls under way out of it; what else counts ended later.
  const bool cut = !options_.rate && !options_.requests && end_;
  const double closed =
      cut ? std::max(std::min(*end_, std::max(Now(), begin_)), good_until_.value_or(0)) : last_end_;
  result.measured.seconds = std::max(closed - begin_, 1e-6);
  return result;
}

}  // namespace tilewire::load

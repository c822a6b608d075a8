#include "client/load/generator.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <memory>
#include <thread>

#include "client/load/checkers.h"
#include "client/load/window.h"

namespace tilewire::load {
namespace {

constexpr auto kTick = std::chrono::milliseconds(20);
constexpr double kProgressSeconds = 0.1;

/// Processor seconds of this process so far.
double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What callers share with the run, and keep alive where it leaves them behind.
struct Shared {
  Shared(const LoadOptions& options, Call made)
      : window(options), call(std::move(made)), checkers(CheckerCount()) {}
  Window window;
  const Call call;
  std::stop_source stop;
  Mutex mutex;
  CondVar ended;
  uint32_t running TILEWIRE_GUARDED_BY(mutex) = 0;
  Checkers checkers;  ///< goes first: checks use all of the others
};

/// Takes an answer to the window once it is known whether it is right; the caller goes on meanwhile.
void Conclude(Shared* shared, const Start& start, Answer answer) {
  if (!answer.check) return shared->window.Ended(start, answer);
  shared->checkers.Submit([shared, start, answer = std::move(answer)]() mutable {
    answer.Settle();
    shared->window.Ended(start, answer);
  });
}

void CallOn(const std::shared_ptr<Shared>& shared, const LoadOptions& options, uint32_t caller) {
  ::prctl(PR_SET_TIMERSLACK, 1000);  // 1 µs instead of 50: starts are punctual
  Random random(options.seed, caller);
  while (const auto start = shared->window.Next(caller, &random)) {
    const LoadClock::time_point begin = LoadClock::now();
    Answer answer = shared->call(start->request, shared->stop.get_token());
    answer.TimesUnlessTold(begin);
    const Status status = answer.status;
    Conclude(shared.get(), *start, std::move(answer));
    if (options.rate || status.ok()) continue;
    const int64_t asked_ms = status.detail()->retry_after_ms;
    shared->window.Pause(std::clamp(static_cast<double>(asked_ms) / 1000, 0.01, 1.0));
  }
  const MutexLock lock(shared->mutex);
  --shared->running;
  shared->ended.NotifyAll();
}

/// Ends the window when it is time, from the calling thread.
class Conductor {
 public:
  Conductor(const LoadOptions& options, std::shared_ptr<Shared> shared, const std::stop_token& stop,
            const std::function<void(const LoadProgress&)>& on_progress)
      : options_(options), shared_(std::move(shared)), stop_(stop), on_progress_(on_progress) {}

  LoadResult Run();

 private:
  bool AllEnded(std::chrono::duration<double> wait);
  void Tick();
  bool Stable();
  void Finish(StopReason reason, const std::string& text);
  /// Cuts the window and the calls under way short.
  void EndEarly(StopReason reason, const std::string& text, double now);
  void Progress(double now);

  const LoadOptions& options_;
  const std::shared_ptr<Shared> shared_;
  const std::stop_token& stop_;
  const std::function<void(const LoadProgress&)>& on_progress_;
  bool begun_ = false, closed_ = false, stopping_ = false;
  double cpu_at_begin_ = CpuSeconds(), cpu_ = 0, wall_ = 0, closed_at_ = 0, stopped_at_ = 0,
         last_progress_ = 0;
  std::string started_ = IsoNow();
  StopReason reason_ = StopReason::kDone;
  std::string text_;
  std::deque<std::pair<double, double>> slices_;
  double next_slice_ = 0;
  std::deque<std::pair<double, uint64_t>> recent_;  ///< time and calls, for the progress line
};

bool Conductor::AllEnded(std::chrono::duration<double> wait) {
  const auto until = LoadClock::now() + std::chrono::duration_cast<LoadClock::duration>(wait);
  const MutexLock lock(shared_->mutex);
  while (shared_->running > 0)
    if (!shared_->ended.WaitUntil(shared_->mutex, until)) return shared_->running == 0;
  return true;
}

void Conductor::Finish(StopReason reason, const std::string& text) {
  if (closed_) return;
  closed_ = true;
  closed_at_ = shared_->window.Now();
  reason_ = reason;
  text_ = text;
  cpu_ = CpuSeconds() - cpu_at_begin_;
  wall_ = closed_at_ - shared_->window.begin();
}

void Conductor::EndEarly(StopReason reason, const std::string& text, double now) {
  if (stopping_) return;
  Finish(reason, text);
  shared_->window.Close();
  shared_->window.Stop();
  shared_->stop.request_stop();
  stopping_ = true;
  stopped_at_ = now;
}

bool Conductor::Stable() {
  const StableRule& rule = *options_.stable;
  slices_.push_back(shared_->window.Slice());
  if (slices_.size() > rule.windows) slices_.pop_front();
  if (slices_.size() < rule.windows) return false;
  const auto varies = [&](auto member) {
    double low = slices_.front().*member, high = low, sum = 0;
    for (const auto& slice : slices_) {
      low = std::min(low, slice.*member);
      high = std::max(high, slice.*member);
      sum += slice.*member;
    }
    return sum > 0 ? (high - low) / (sum / static_cast<double>(slices_.size())) : 2.0;
  };
  using Pair = std::pair<double, double>;
  return varies(&Pair::first) <= rule.within && varies(&Pair::second) <= rule.within;
}

void Conductor::Progress(double now) {
  if (!on_progress_ || now - last_progress_ < kProgressSeconds) return;
  last_progress_ = now;
  uint64_t calls = 0, errors = 0;
  shared_->window.Snapshot(&calls, &errors);
  recent_.emplace_back(now, calls);
  while (recent_.size() > 1 && now - recent_.front().first > 1) recent_.pop_front();
  const double passed = now - recent_.front().first;
  const double rate = passed > 0 ? static_cast<double>(calls - recent_.front().second) / passed : 0;
  const double begin = shared_->window.begin();
  on_progress_({now < begin, now < begin ? now : now - begin, calls, errors, rate});
}

void Conductor::Tick() {
  Window& window = shared_->window;
  const double now = window.Now(), passed = now - window.begin();
  Progress(now);
  if (!begun_ && passed >= 0) {
    begun_ = true;
    started_ = IsoNow();
    cpu_at_begin_ = CpuSeconds();
    if (options_.stable) window.Slice(), next_slice_ = passed + options_.stable->window_seconds;
  }
  if (stop_.stop_requested()) {
    EndEarly(StopReason::kInterrupted, "interrupted", now);
  } else if (window.lost()) {
    EndEarly(
        StopReason::kServerLost,
        "the server no longer has the arrays or regions of this run: it was started anew, or they expired",
        now);
  } else if (window.lost_seconds() > options_.lost_seconds) {
    EndEarly(StopReason::kServerLost,
             "nothing but UNAVAILABLE came back for " +
                 std::to_string(static_cast<int>(options_.lost_seconds)) + " s",
             now);
  }
  if (!begun_ || closed_) return;
  if (options_.seconds && passed >= *options_.seconds) Finish(StopReason::kSeconds, "the time is over");
  if (options_.requests && window.exhausted()) Finish(StopReason::kRequests, "all requests were made");
  if (!options_.stable || passed < next_slice_) return;
  next_slice_ += options_.stable->window_seconds;
  const bool stable = Stable();
  if (!stable && passed < options_.stable->max_seconds) return;
  Finish(stable ? StopReason::kStable : StopReason::kSeconds,
         stable ? "rate and median latency are stable" : "not stable when the time was over");
  window.Close();
}

LoadResult Conductor::Run() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->running = options_.callers;
  }
  std::vector<std::thread> threads;
  for (uint32_t caller = 0; caller < options_.callers; ++caller)
    threads.emplace_back([shared = shared_, options = options_, caller] { CallOn(shared, options, caller); });
  Window& window = shared_->window;
  bool abandoned = false, given_up = false;
  while (!AllEnded(kTick)) {
    Tick();
    const double now = window.Now();
    if (options_.rate && closed_ && !given_up && now - closed_at_ > options_.patience_seconds)
      window.Abandon(), given_up = true;
    if (!stopping_ || now - stopped_at_ < options_.stop_seconds) continue;
    abandoned = true;
    break;
  }
  Finish(options_.requests ? StopReason::kRequests : StopReason::kSeconds,
         options_.requests ? "all requests were made" : "the time is over");
  for (auto& thread : threads) {
    if (abandoned) {
      thread.detach();
    } else {
      thread.join();
    }
  }
  shared_->checkers.Finish();
  LoadResult result = window.Take();
  result.reason = reason_;
  result.text = text_;
  result.started = started_;
  result.abandoned = abandoned;
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  result.cpu_share = wall_ > 0 ? std::clamp(cpu_ / wall_ / cores, 0.0, 1.0) : 0;
  return result;
}

}  // namespace

double CheckingShare(const LoadResult& load, uint32_t callers) {
  const double all = load.measured.seconds * callers;
  return all > 0 ? std::min(load.held_up_seconds / all, 1.0) : 0;
}

std::string IsoNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

LoadResult RunLoad(const LoadOptions& options, const Call& call, const std::stop_token& stop,
                   const std::function<void(const LoadProgress&)>& on_progress) {
  return Conductor(options, std::make_shared<Shared>(options, call), stop, on_progress).Run();
}

}  // namespace tilewire::load

#include "server/rpc/calls/throttle.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewire::rpc {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kShortestHold{5};
// Between two connections that come again: so few are asked that only one of so many calls that can be done
// is refused for it. Of light calls one connection too many is soon felt, and of heavy ones while nobody
// knows yet. Who is asked learns it as late as his calls are read, light ones in line behind others: he holds
// back for a multiple of what they wait for.
constexpr std::chrono::milliseconds kStepHeavy{16}, kStep{8};
constexpr double kCallsAStep = 64, kTold = 2, kToldHeavy = 1.25;
// Where light ones are refused by age, which costs as much as what is done, who comes again brings what he
// has for as long as they wait: so many come in that time, or nothing else would be done.
constexpr double kComeBack = 6;

// Of the rate: what light calls are to bring, were there many connections, so that there is always something
// to do; and as many connections are taken to send beside those whose calls can be done, so that where these
// are few one too many, which is a large part of what can be done, is seldom.
constexpr double kAim = 1.15, kSpare = 2.0 / 3;
// Of `late`: what a call is to wait where there are too many; heavy ones, which fewer are, and which come a
// window at a time, for longer, so that there is something to do.
constexpr double kTarget = 0.12, kTargetHeavy = 0.25;
// Of that: many heavy ones run at a time, which is something to do, too, though not all of it, for they may
// take long without making anybody wait. The share would swing, were it a matter of what waits behind all
// places alone.
constexpr double kMostRunning = 0.4;
// Of the heavy ones that are too many, so many are held back at least while not nearly all can be done: were
// all to send again, calls of tens of milliseconds would wait before they are found too many once more.
constexpr double kHeldBack = 0.5, kNearlyAll = 0.95;
// Of `late`: older ones are refused, light ones sooner, but only until all clients had time to learn: of
// those who do not hold back all would be so old.
constexpr double kOld = 0.5, kOldHeavy = 1;
// Seconds: a server stands for as long now and then, however short `late` is.
constexpr double kLeastOld = 1e-3;
// Heavy ones that were read cost as much refused as served: those alone that waited longer than so many take.
constexpr double kOldCalls = 48;
constexpr std::chrono::milliseconds kUntilAllKnow{250};
// After which the same begins again where calls wait for very long; who holds nothing back gets nothing then.
constexpr std::chrono::milliseconds kAnew{2000};
// But sooner, and where they wait for so much of `late`, if hardly such a part was done just now of what can
// be: a server that stood for a moment.
// In as long as takes so many, or one that is slow or uneven hardly does anything now and then.
constexpr double kMuch = 2, kHardly = 0.25, kToTell = 16;
constexpr std::chrono::milliseconds kJustNow{50};
// Of `late`: where no crowd is, so old ones are at any time, but no more of them for each that begins, so
// that some are served whatever comes. What came while the server stood for a moment is so much that each
// call would be too late once it begins, and so would be those that come while they are served.
constexpr double kVeryOld = 4;
constexpr int kMostVeryOld = 8;
// Seconds: in which time one makes up for what waits, for what waits makes a server slower, too; over which
// what came is compared with what might, of heavy calls at a fifth of the weight behind full sockets, where
// clients have more than comes.
constexpr double kMakeUp = 5e-3, kMean = 80e-3, kWeightFull = 0.2;
// What waits is seen no further than sockets go: behind those that are full clients have more. So while too
// much goes on waiting for more than so many seconds, less and less is let come.
constexpr double kStands = 50e-3, kPress = 3.3;
// And where hardly anything waits, though as many send as may, more is, and with every second still more.
constexpr double kRests = 10e-3, kEase = 3.3, kLittle = 50;
// Of `late`: as long may a call wait that has not sent its message yet, while there are too many and for a
// while after.
constexpr double kMostAnnounced = 0.5, kMostAnnouncedAfter = 2;
constexpr std::chrono::seconds kLately{2};
// Of the calls that can be done, as many are refused so: of who comes again at once all would be, again and
// again, and be read in part each time.
constexpr double kMostRefused = 0.5;
// Of `late`: as long may those of one connection wait that are on their way, where all who send are served
// alike: gRPC reads a piece of each in turns, so whose are many wait for longer than most.
constexpr double kComing = 0.35, kLeastComing = 8;
// Unread calls of which few are told from many by their number alone, where no crowd is: who sends large
// messages has some of them under way.
constexpr double kFewUnread = 16;
// Seconds that are read at a time, and lie unread until then, though nobody waits.
constexpr double kReadAtOnce = 1e-3;
// The share is no smaller than this part of what the most that ever came leave, whoever obeys.
constexpr double kLeastOfRate = 0.4, kLeastShare = 1.0 / 32;

Clock::duration DurationOf(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

}  // namespace

CallsWindow Throttle::Measure(TimePoint now, double unread) {
  const int64_t came = came_.load(std::memory_order_relaxed), done = done_.load(std::memory_order_relaxed);
  // One that just ends is in neither for a moment.
  const int64_t begun = std::max(begun_then_, done + running_.load(std::memory_order_relaxed));
  const CallsWindow window{
      .seconds = Seconds(now - looked_.load(std::memory_order_relaxed)).count(),
      .came = std::max(0.0, static_cast<double>(came - came_then_) + unread - unread_then_),
      .begun = static_cast<double>(begun - begun_then_),
      .done = static_cast<double>(done - done_then_),
      .dropped = static_cast<double>(dropped_.exchange(0, std::memory_order_relaxed)),
      .idle = idle_.exchange(false, std::memory_order_relaxed) &&
              unread <= std::max(1.0, kReadAtOnce * done_rate_.rate())};
  unread_then_ = unread;
  came_then_ = came, begun_then_ = begun, done_then_ = done;
  looked_.store(now, std::memory_order_relaxed);
  return window;
}

bool Throttle::HardlyDoes(const CallsWindow& now, double rate) {
  hardly_.seconds += now.seconds;
  hardly_.done += now.done + now.dropped;
  if (hardly_.seconds * rate < kToTell || hardly_.seconds < Seconds(kLook).count()) return false;
  const CallsWindow seen = std::exchange(hardly_, {});
  return seen.done < kHardly * rate * seen.seconds;
}

bool Throttle::Look(TimePoint now, double unread) {
  if (!IsDue(now) || !mutex_.TryLock()) return false;
  const MutexLock lock(mutex_, std::adopt_lock);
  if (!IsDue(now)) return false;
  if (crowd_ == 0 && share() == 1 && unread < kFewUnread) unread = 0;
  const CallsWindow window = Measure(now, unread);
  const CallsWindow both{.seconds = window.seconds + last_.seconds,
                         .came = window.came + last_.came,
                         .done = window.done + last_.done,
                         .idle = window.idle || last_.idle};
  last_ = window;
  done_rate_.Learn(window, both, share() < 1);
  const double rate = done_rate_.rate();
  const Turns::Parts parts = turns_.Count(now);
  const int connections = parts.send + parts.hold;
  if (rate <= 0) return false;

  const double in = both.came / both.seconds, late = Seconds(late_).count();
  const double target = (crowd_ > 0 ? kTarget : kTargetHeavy) * late;
  // Without the one that has just come.
  const auto waiting =
      static_cast<double>(std::max<int64_t>(waiting_.load(std::memory_order_relaxed) - 1, 0)) + unread;
  double waits = waiting / std::max(rate, window.through() / window.seconds);
  const bool full = full_.exchange(false, std::memory_order_relaxed);
  if (full) waits = std::max(waits, late);
  seen_.store(waiting > 2 * unread, std::memory_order_relaxed);
  rate_now_.store(rate, std::memory_order_relaxed);
  announced_.store(0, std::memory_order_relaxed);
  refused_.store(0, std::memory_order_relaxed);
  waits_.store(DurationOf(std::min(waits, 10.0)), std::memory_order_relaxed);
  unread_until_.store(now + DurationOf(std::min(unread / rate, 10.0)), std::memory_order_relaxed);
  const auto running = static_cast<double>(running_.load(std::memory_order_relaxed));
  const double work = crowd_ > 0 ? waits : waits + std::min(running / rate, kMostRunning * target);
  if (window.idle || work <= target) well_ = now;
  if (HardlyDoes(window, rate) && waits > late) stood_ = now;
  if (work > target / 2) busy_then_ = now;
  const double stands = std::max(0.0, Seconds(now - well_).count() - kStands);
  const double before = share();
  if (parts.send + 1 <= before * connections) busy_then_ = now;  // more come again by themselves
  const double rests = std::max(0.0, Seconds(now - busy_then_).count() - kRests);
  const double passed = window.seconds * (crowd_ == 0 && work > target ? kWeightFull : 1);
  const double weight = before < 1 ? 1 - std::exp(-passed / kMean) : 1;
  in_mean_ += (in - in_mean_) * weight;
  sends_mean_ += (parts.sends() - sends_mean_) * weight;
  in_most_ = before < 1 ? std::max(in_most_, in) : in;
  if (before == 1) {
    const Excess::Seen seen{.waiting = waiting,
                            .unread = unread,
                            .running = running,
                            .waits = waits,
                            .rate = rate,
                            .full = full,
                            .now = window,
                            .both = both};
    if (!excess_.Begins(seen)) return false;
    began_ = now;
    since_.store(now, std::memory_order_relaxed);
    in_mean_ = std::max(in, window.came / window.seconds);  // nobody called for long, perhaps
  } else if (crowd_ > 0) {
    const Clock::duration known = now - since_.load(std::memory_order_relaxed);
    const bool stood = waits > kMuch * late && now - stood_ < kJustNow;
    if ((known > kAnew && waits > kVeryOld * late) || (known > kUntilAllKnow && stood))
      since_.store(now, std::memory_order_relaxed);
  }
  double can = rate * sends_mean_ / std::max(in_mean_, 1e-3);
  if (crowd_ > 0 && connections > 0 && can < 1) {
    const double can_send = can * connections;
    can = std::min(can * kAim * can_send / (can_send + kSpare), (1 + can) / 2);  // or it would begin anew
  }
  can = std::max(can, kLeastOfRate * rate / in_most_);
  const double made_up = work > target ? 1 / (1 + (work - target) / kMakeUp) : 1 + kLittle * (target - work);
  // Where nothing waits one connection sends at least, or nobody would learn that there are not too many.
  const double least =
      work > target / 2 ? kLeastShare : std::clamp(1.0 / std::max(connections, 1), kLeastShare, 0.5);
  const double most = crowd_ == 0 && can < kNearlyAll ? 1 - kHeldBack * (1 - can) : 1;
  const double share =
      std::clamp(can * std::clamp(made_up * (1 + kEase * rests - kPress * stands), 0.25, 2.0), least, most);
  share_.store(share, std::memory_order_relaxed);
  if (share < 1) too_many_.store(now, std::memory_order_relaxed);
  if (before < 1 && share == 1) excess_.Ends(Seconds(now - began_).count());
  const int lines = lines_.load(std::memory_order_relaxed);
  // Half of an equal part is enough to count as one of the many.
  const bool many = seen_.load(std::memory_order_relaxed) && lines > 0;
  const double most_coming = kComing * late * rate / std::max(parts.send, 1);
  most_coming_.store(static_cast<int>(std::max(most_coming, kLeastComing)), std::memory_order_relaxed);
  const bool at_first = now - since_.load(std::memory_order_relaxed) < kUntilAllKnow;
  const Clock::duration shortest = crowd_ > 0 ? kStep : kStepHeavy;
  auto step = std::max(shortest, DurationOf(std::min(kCallsAStep / rate, 1.0)));
  if (at_first && crowd_ == 0) step = kStep;
  if (at_first && crowd_ > 0) step = std::max(step, DurationOf(std::min(waits / kComeBack, 1.0)));
  turns_.Choose(
      now, {.share = share,
            .step = step,
            .least = DurationOf(std::min((crowd_ > 0 ? kTold : kToldHeavy) * waits, 1.0)),
            .waiting = many ? static_cast<int>(waiting_.load(std::memory_order_relaxed) / (2 * lines)) : 0});
  return before == 1 && share < 1;
}

std::optional<Throttle::Hold> Throttle::Refuses(TimePoint now, const Turn* turn) {
  if (now - too_many_.load(std::memory_order_relaxed) > kLately || IsSpared(turn)) return std::nullopt;
  const double rate = rate_now_.load(std::memory_order_relaxed);
  const Clock::duration waits =
      waits_.load(std::memory_order_relaxed) +
      DurationOf(std::min(static_cast<double>(announced_.load(std::memory_order_relaxed)) / rate, 10.0));
  const double most = share() < 1 ? kMostAnnounced : kMostAnnouncedAfter;
  if (waits <= most * late_ ||
      refused_.load(std::memory_order_relaxed) > kMostRefused * rate * Seconds(kLook).count()) {
    announced_.fetch_add(1, std::memory_order_relaxed);  // it counts as one that came when its message does
    return std::nullopt;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  came_.fetch_add(1, std::memory_order_relaxed);
  return Hold{.waits = waits, .hold = std::max<Clock::duration>(waits, kShortestHold)};
}

double Throttle::Old() const {
  const double late = Seconds(late_).count();
  return crowd_ > 0 ? std::max(kOld * late, kLeastOld) : kOldHeavy * late;
}

std::optional<Throttle::Hold> Throttle::IsOld(Clock::duration waited, TimePoint now, const Turn* turn) {
  const double late = Seconds(late_).count(), rate = rate_now_.load(std::memory_order_relaxed);
  const double old = crowd_ > 0 ? Old() : std::clamp(kOldCalls / rate, Old(), kVeryOld * late);
  if (share() >= 1 || Seconds(waited).count() < old || IsSpared(turn)) return std::nullopt;
  if (now - since_.load(std::memory_order_relaxed) > kUntilAllKnow &&
      (crowd_ > 0 || waited < kVeryOld * late_ ||
       very_old_.fetch_add(1, std::memory_order_relaxed) >= kMostVeryOld))
    return std::nullopt;
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return Hold{.waits = waited, .hold = 2 * late_};
}

std::optional<Throttle::Hold> Throttle::WillBeOld(TimePoint now, const Turn* turn) {
  const Clock::duration waits = waits_.load(std::memory_order_relaxed);
  if (share() >= 1 || waits < DurationOf(Old()) || IsSpared(turn) ||
      now - since_.load(std::memory_order_relaxed) > kUntilAllKnow)
    return std::nullopt;
  came_.fetch_add(1, std::memory_order_relaxed);
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return Hold{.waits = waits, .hold = 2 * late_};
}

std::optional<Throttle::Hold> Throttle::Asks(const std::shared_ptr<Turn>& turn, TimePoint now, int coming) {
  if (late_ == Clock::duration{}) return std::nullopt;
  const bool at_once = turns_.Calls(turn, now) && !MayRest(now);
  if (share() >= 1) return std::nullopt;
  const int most = crowd_ > 0 ? coming : most_coming_.load(std::memory_order_relaxed);
  const auto hold = turns_.Asks(turn.get(), now, at_once || coming > most);
  if (!hold) return std::nullopt;
  return Hold{.waits = waits_.load(std::memory_order_relaxed), .hold = *hold};
}

}  // namespace tilewire::rpc

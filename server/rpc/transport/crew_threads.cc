// The threads of a crew: how many there are, and others in place of those that stand.
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "server/rpc/transport/crew.h"

namespace tilewire::rpc {
namespace {

/// In place of others that stand: who has as many connections that keep one each takes all cores by then.
constexpr int kMostInPlace = 64;

}  // namespace

void Crew::Start(int most) {
  const MutexLock lock(mutex_);
  for (most_ = 0; most_ < most; ++most_) AddThread();
}

void Crew::AddThread() {
  resting_.reserve(threads_.size() + 1);  // who goes to rest must not need memory
  threads_.emplace_back([this] {
    pthread_setname_np(pthread_self(), "tw-crew");
    Run();
  });
}

Crew::~Crew() {
  if (!has_threads()) Run();  // there were none for it
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (auto& thread : threads) thread.join();
}

void Crew::LookAfter(TimePoint now) {
  const MutexLock lock(mutex_);
  for (Member& member : members_) {
    if (member.rests || member.stands.load(std::memory_order_relaxed) || !member.progress.Stands(now))
      continue;
    member.stands.store(true, std::memory_order_relaxed);
    standing_.fetch_add(1, std::memory_order_relaxed);
    WatchesNoMore(&member);
    SleepsNoMore(&member);
  }
  const int standing = standing_.load(std::memory_order_relaxed);
  if (standing == 0 || (watching_ > 0 && line_.empty())) return;
  Call();
  if (calls_ > 0 || static_cast<int>(threads_.size()) >= most_ + std::min(standing, kMostInPlace)) return;
  try {
    AddThread();
  } catch (const std::exception&) {  // the system has none: at the next look, perhaps
  }
}

void Crew::StandsNoMore(Member* member) {
  const MutexLock lock(mutex_);
  if (member->stands.exchange(false, std::memory_order_relaxed))
    standing_.fetch_sub(1, std::memory_order_relaxed);
}

void Crew::WatchesNoMore(Member* member) {
  if (std::exchange(member->watches, false)) --watching_;
}

void Crew::SleepsNoMore(const Member* member) {
  if (sleeper_ != member) return;
  sleeper_ = nullptr;
  asleep_.store(false, std::memory_order_relaxed);
}

}  // namespace tilewire::rpc

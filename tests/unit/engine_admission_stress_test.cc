// Random requests from many threads: never over a budget, nothing lost, nothing decided twice.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/admission/admission.h"
#include "tests/unit/engine_time_testing.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kSmallDevice = 100, kBulkDevice = 700, kSmallPinned = 10, kBulkPinned = 70;
constexpr int kMaxInFlight = 12, kRequests = 2000;

/// What is out, as the holders of tickets see it: never more than what admission counts.
class Ledger {
 public:
  void Take(const Demand& demand) {
    std::lock_guard lock(mutex_);
    Add(demand, 1);
    EXPECT_LE(device_[0], kBulkDevice);
    EXPECT_LE(device_[1], kSmallDevice);
    EXPECT_LE(pinned_[0], kBulkPinned);
    EXPECT_LE(pinned_[1], kSmallPinned);
    EXPECT_LE(count_[0] + count_[1], kMaxInFlight);
    EXPECT_LE(count_[0], kMaxInFlight * 3 / 4);
    most_ = std::max(most_, count_[0] + count_[1]);
  }
  void Give(const Demand& demand) {
    std::lock_guard lock(mutex_);
    Add(demand, -1);
  }
  int most() const { return most_; }

 private:
  void Add(const Demand& demand, int sign) {
    device_[demand.small] += sign * demand.device_bytes;
    pinned_[demand.small] += sign * demand.pinned_bytes;
    count_[demand.small] += sign;
  }
  std::mutex mutex_;
  std::array<int64_t, 2> device_{}, pinned_{};  ///< [small]
  std::array<int, 2> count_{};
  int most_ = 0;
};

struct Held {
  Demand demand;
  std::atomic<int> decisions{0};
  std::mutex mutex;
  Ticket ticket;
  bool granted = false;
};

struct Counts {
  std::atomic<uint64_t> granted{0}, busy{0}, late{0}, cancelled{0};
};

/// Asks, holds, cancels and gives back at random, while time goes on with every step.
void Client(ManualTime& time, Admission& admission, Ledger& ledger, Counts& counts, uint64_t seed,
            std::vector<std::shared_ptr<Held>>& all) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<std::shared_ptr<Held>, Admission::Id>> mine;
  const auto give_back = [&](size_t i) {
    const auto [held, id] = mine[i];
    if (random() % 4 == 0) admission.Cancel(id, Status(Code::kCancelled, "GONE", ""));
    Ticket ticket;
    {
      std::lock_guard lock(held->mutex);
      if (held->decisions == 0) return;  // still waits
      if (held->granted) ledger.Give(held->demand);
      held->granted = false;
      ticket = std::move(held->ticket);
    }
    mine[i] = mine.back();
    mine.pop_back();
  };
  for (int i = 0; i < kRequests; ++i) {
    time.Advance(std::chrono::microseconds(random() % 100));
    auto held = std::make_shared<Held>();
    const bool small = random() % 3 == 0;
    held->demand = {small, static_cast<int64_t>(1 + random() % (small ? 60 : 400)),
                    static_cast<int64_t>(random() % (small ? 8 : 40))};
    held->demand.owner = seed % 2 == 0 ? "ann" : "bob";
    all.push_back(held);
    const TimePoint deadline =
        random() % 4 == 0 ? time.Now() + std::chrono::microseconds(random() % 500) : TimePoint::max();
    const auto id = admission.Request(held->demand, deadline, [&, held](Result<Ticket> ticket) {
      std::lock_guard lock(held->mutex);
      ++held->decisions;
      if (ticket) {
        ledger.Take(held->demand);
        held->granted = true;
        held->ticket = *std::move(ticket);
        ++counts.granted;
      } else {
        const Code code = ticket.error().code();
        ++(code == Code::kCancelled          ? counts.cancelled
           : code == Code::kDeadlineExceeded ? counts.late
                                             : counts.busy);
      }
    });
    mine.emplace_back(held, id);
    while (mine.size() > random() % 6) give_back(random() % mine.size());
  }
  for (auto& [held, id] : mine) admission.Cancel(id, Status(Code::kCancelled, "END", ""));
  while (!mine.empty()) give_back(mine.size() - 1);
}

TEST(AdmissionStress, NeverOverBudgetAndNothingLost) {
  ManualTime time;
  Timer timer(&time);
  SerialThread executor("executor");
  Admission admission({.device_bytes = kSmallDevice + kBulkDevice,
                       .pinned_bytes = kSmallPinned + kBulkPinned,
                       .max_in_flight = kMaxInFlight,
                       .queue_length = 10,
                       .queue_seconds = 0.001,
                       .shared_in_flight = 8},
                      &timer, &executor);
  Ledger ledger;
  Counts counts;
  std::array<std::vector<std::shared_ptr<Held>>, 4> all;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < all.size(); ++t)
    threads.emplace_back([&, t] { Client(time, admission, ledger, counts, t + 1, all[t]); });
  for (auto& thread : threads) thread.join();
  std::promise<void> told;
  executor.Post([&told] { told.set_value(); });
  told.get_future().wait();
  for (const auto& list : all)
    for (const auto& held : list) EXPECT_EQ(held->decisions, 1);
  EngineStats stats;
  admission.Snapshot(&stats);
  EXPECT_EQ(stats.device_bytes_in_use, 0U);
  EXPECT_EQ(stats.pinned_bytes_in_use, 0U);
  EXPECT_EQ(stats.jobs_in_flight, 0U);
  EXPECT_EQ(stats.jobs_queued, 0U);
  EXPECT_EQ(stats.jobs_admitted, counts.granted);
  EXPECT_EQ(stats.jobs_refused_busy, counts.busy);
  EXPECT_EQ(counts.granted + counts.busy + counts.late + counts.cancelled, 4U * kRequests);
  EXPECT_GT(counts.granted, 100U);
  EXPECT_GT(ledger.most(), 2);
  // No timer function may still be inside the admission when it goes.
  testing::Flush(timer);
}

/// Jobs that are opened by many threads, of which most land; the rest leaves as it came.
TEST(AdmissionStress, OrdersAreServedOnceAndLeaveNothingBehind) {
  ManualTime time;
  Timer timer(&time);
  SerialThread executor("executor");
  Admission admission({.device_bytes = 800, .max_in_flight = 4, .queue_length = 1000, .queue_seconds = 3600},
                      &timer, &executor);
  struct Open {
    std::atomic<bool> ordered{false}, decided{false};
    std::optional<Ticket> ticket;
    std::optional<Order> order;
  };
  Ledger ledger;
  std::atomic<uint64_t> served{0};
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 8; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 200; ++i) {
        const auto open = std::make_shared<Open>();
        const Demand demand{.device_bytes = static_cast<int64_t>(1 + random() % 700),
                            .owner = std::to_string(seed % 3)};
        admission.RequestOrder(demand, TimePoint::max(), [open](Result<Order> order) {
          ASSERT_TRUE(order);
          open->order.emplace(*std::move(order));
          open->order->Bind([open = open.get()](Result<Ticket> ticket) {
            EXPECT_FALSE(open->decided);
            if (ticket) open->ticket = *std::move(ticket);
            open->decided = true;
          });
          open->ordered = true;
        });
        while (!open->ordered) std::this_thread::yield();
        if (random() % 4 == 0) continue;  // it never lands
        open->order->Land();
        while (!open->decided) std::this_thread::yield();
        ASSERT_TRUE(open->ticket);
        ledger.Take(demand);
        ++served;
        ledger.Give(demand);
      }
    });
  for (auto& thread : threads) thread.join();
  std::promise<void> told;
  executor.Post([&told] { told.set_value(); });
  told.get_future().wait();
  EngineStats stats;
  admission.Snapshot(&stats);
  EXPECT_EQ(stats.jobs_admitted, served);
  EXPECT_EQ(stats.device_bytes_in_use, 0U);
  EXPECT_EQ(stats.jobs_in_flight + stats.jobs_queued + stats.jobs_open, 0U);
  EXPECT_FALSE(admission.AnybodyWaits());
  testing::Flush(timer);
}

}  // namespace
}  // namespace tilewire::engine

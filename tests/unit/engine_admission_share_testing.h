// Requests of several owners, for tests of who is let in.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <string>
#include <utility>

#include "server/engine/admission/admission.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/executors.h"

namespace tilewire::engine {

/// One request and what became of it.
struct Wish {
  std::string owner;
  Admission::Id id = 0;
  std::optional<Ticket> ticket;
  Status refusal;
  int order = 0;  ///< among all that were granted
  bool granted() const { return order > 0; }
};

class AdmissionShare : public ::testing::Test {
 protected:
  static constexpr int64_t kMega = 1 << 20;

  ~AdmissionShare() override {
    // Tickets that go let nobody in whose wish is gone already.
    admission_->Close(Status(Code::kUnavailable, "OVER", ""));
    testing::Flush(timer_);
  }
  Wish& Ask(const std::string& owner, int64_t bytes, bool small = false, const OwnLimits& own = {}) {
    Wish& wish = wishes_.emplace_back();
    wish.owner = owner;
    wish.id = admission_->Request({.small = small, .device_bytes = bytes, .owner = owner, .own = own},
                                  TimePoint::max(), [this, &wish](Result<Ticket> ticket) {
                                    if (!ticket) {
                                      wish.refusal = ticket.error();
                                      return;
                                    }
                                    wish.ticket = *std::move(ticket);
                                    wish.order = ++granted_;
                                  });
    return wish;
  }
  void Limit(const AdmissionLimits& limits) { admission_.emplace(limits, &timer_, &executor_); }
  /// One running job after the other, those whom that lets in too, in the order in which they were: each
  /// after so long that nobody overtakes who waits.
  void EndAll() {
    for (;;) {
      Wish* first = nullptr;
      for (Wish& wish : wishes_)
        if (wish.ticket && (!first || wish.order < first->order)) first = &wish;
      if (!first) return;
      time_.Advance(kOvertakenAtMost);
      first->ticket.reset();
    }
  }
  EngineStats Stats() const {
    EngineStats stats;
    admission_->Snapshot(&stats);
    return stats;
  }

  ManualTime time_;
  Timer timer_{&time_};
  tilewire::testing::AtOnce executor_;
  /// Bulk has 700 MiB, the small class 64.
  std::optional<Admission> admission_{
      std::in_place, AdmissionLimits{.device_bytes = 764 * kMega, .queue_length = 256, .queue_seconds = 3600},
      &timer_, &executor_};
  std::list<Wish> wishes_;  ///< after the admission: tickets go before it
  int granted_ = 0;
};

}  // namespace tilewire::engine

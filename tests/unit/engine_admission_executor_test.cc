// Who waits is let in by whoever gives back enough, and told by the executor: nothing else runs on that
// thread.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/admission/admission.h"
#include "tests/unit/executors.h"

namespace tilewire::engine {
namespace {

class AdmissionExecutor : public ::testing::Test {
 protected:
  struct Asked {
    Admission::Id id = 0;
    std::optional<Ticket> ticket;
    Status refusal;
    bool granted() const { return ticket.has_value(); }
  };
  /// A bulk request; of these 700 bytes may be out.
  void Ask(Asked& asked, int64_t bytes) {
    asked.id = admission_.Request({.device_bytes = bytes}, TimePoint::max(), [&asked](Result<Ticket> ticket) {
      if (ticket) {
        asked.ticket = *std::move(ticket);
      } else {
        asked.refusal = ticket.error();
      }
    });
  }
  uint64_t Admitted() const {
    EngineStats stats;
    admission_.Snapshot(&stats);
    return stats.jobs_admitted;
  }

  Timer timer_;
  tilewire::testing::WhenTold executor_;
  Admission admission_{{.device_bytes = 800, .max_in_flight = 8, .queue_length = 4, .queue_seconds = 3600},
                       &timer_,
                       &executor_};
};

TEST_F(AdmissionExecutor, NothingIsPostedWhereNobodyWaits) {
  Asked one, two;
  Ask(one, 600);
  Ask(two, 100);
  EXPECT_TRUE(one.granted() && two.granted());
  one.ticket.reset();
  two.ticket.reset();
  admission_.Retry();
  EXPECT_TRUE(executor_.empty());
}

TEST_F(AdmissionExecutor, TellsWhomAReleaseLetsIn) {
  Asked running, waiting;
  Ask(running, 600);
  Ask(waiting, 200);
  EXPECT_TRUE(executor_.empty());
  running.ticket.reset();
  EXPECT_EQ(Admitted(), 2U);        // at once, so that nobody overtakes it,
  EXPECT_FALSE(waiting.granted());  // but it hears of it elsewhere
  executor_.Run();
  EXPECT_TRUE(waiting.granted());
}

TEST_F(AdmissionExecutor, TellsWhomACancelledOneHeldUp) {
  Asked running, cancelled, behind;
  Ask(running, 300);
  Ask(cancelled, 600);
  Ask(behind, 200);
  admission_.Cancel(cancelled.id, Status(Code::kCancelled, "GONE", ""));
  EXPECT_EQ(cancelled.refusal.reason(), "GONE");
  EXPECT_FALSE(behind.granted());
  executor_.Run();
  EXPECT_TRUE(behind.granted());
}

TEST_F(AdmissionExecutor, ReclaimsMemory) {
  Asked stored, waiting;
  std::vector<int64_t> wanted;
  admission_.SetReclaim([&](int64_t bytes) {
    wanted.push_back(bytes);
    stored.ticket.reset();
    return true;
  });
  Ask(stored, 600);
  Ask(waiting, 300);
  admission_.Retry();  // it is on its way already
  EXPECT_TRUE(wanted.empty());
  executor_.Run();
  EXPECT_EQ(wanted, std::vector<int64_t>{200});
  EXPECT_TRUE(waiting.granted());
}

}  // namespace
}  // namespace tilewire::engine

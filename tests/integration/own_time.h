// Servers whose time stands still until a test lets it pass, and how a test knows that it may: gRPC's own
// deadlines stay real, and so does whatever bytes take on their way.
#pragma once

#include <future>

#include "tests/integration/server_fixture.h"
#include "tests/unit/engine_time_testing.h"

namespace tilewire::testing {

/// Time of one server, which it outlives.
class OwnTimeOfServer {
 public:
  /// How long clients may be idle.
  static constexpr std::chrono::seconds kIdle{40};
  /// Of calls, in seconds. The server takes over what is left of a deadline into its own time, which passes
  /// faster than bytes travel.
  static constexpr double kDeadline = 1e6;

  /// With queue bounds that no test reaches.
  TestServer::Options Options() {
    TestServer::Options options;
    options.engine.time = &time_;
    options.engine.queue_seconds = 1e6;
    options.rpc.idle_seconds = kIdle.count();
    return options;
  }
  TimePoint Now() const { return time_.Now(); }
  ManualTime& source() { return time_; }

  /// Lets some eighths of kIdle pass; the server has looked at its calls after each.
  void Pass(TestServer& server, int eighths) {
    for (int i = 0; i < eighths; ++i) engine::testing::Pass(time_, server.engine().timer(), kIdle / 8);
  }
  /// Lets time pass until the condition holds.
  template <typename Condition>
  void PassUntil(TestServer& server, const Condition& condition) {
    EXPECT_TRUE(Eventually([&] {
      Pass(server, 1);
      return condition();
    }));
  }
  /// How a stream that has opened a job ends when nothing but time happens, which stands still once the
  /// server has given up: the client has an eighth of kIdle to take its status. `opener` opened the job.
  grpc::Status DrainWhileItPasses(TestServer& server, RawStream& raw, const RawStream& opener) {
    auto ended = std::async(std::launch::async, [&raw] { return raw.Drain(); });
    EXPECT_TRUE(Eventually([&] {
      if (!GivenUp(server, opener)) Pass(server, 1);
      return GivenUp(server, opener);
    }));
    return ended.get();
  }
  grpc::Status DrainWhileItPasses(TestServer& server, RawStream& raw) {
    return DrainWhileItPasses(server, raw, raw);
  }
  /// Waits until the server has noticed that Opened, or a further stream's Joined, was taken: it tells only
  /// those who read why it gives them up.
  static bool OpenedIsTaken(TestServer& server, const RawStream& opener, uint32_t stream = 0) {
    return Eventually([&] {
      const auto job = server.engine().Find(opener.opened.job(), "anonymous");
      return job && (*job)->output_awaited(static_cast<int>(stream));
    });
  }
  static bool GivenUp(TestServer& server, const RawStream& raw) {
    const auto job = server.engine().Find(raw.opened.job(), "anonymous");
    return !job || !(*job)->status().ok();
  }

 private:
  ManualTime time_;
};

/// Waits until so many operand bytes of the stream's job, in whole blocks, are staged or where they belong.
inline bool HasArrived(TestServer& server, const RawStream& raw, uint64_t bytes) {
  return Eventually([&] {
    const auto job = server.engine().Find(raw.opened.job(), "anonymous");
    return job && (*job)->timing().bytes_in >= bytes;
  });
}

/// Waits until the server knows that the stream, which opened its job, has half-closed.
inline bool HasHalfClosed(TestServer& server, const RawStream& raw) {
  return Eventually([&] {
    const auto job = server.engine().Find(raw.opened.job(), "anonymous");
    if (!job) return true;  // and it is all over
    const auto joined = (*job)->Join();
    return !joined && joined.error().reason() == "JOIN_LATE";
  });
}

}  // namespace tilewire::testing

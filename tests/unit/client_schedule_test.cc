// What a call is made of: the order of chunks, and when another attempt is worth it.
#include <gtest/gtest.h>

#include "client/cpp/retry.h"
#include "client/cpp/schedule.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, CoversEveryByteOnceWithinTheWindow) {
  for (const uint64_t block : {0ull, 1ull, 4096ull, 65536ull, 4ull << 20}) {
    for (const uint64_t window : {0ull, 1ull, 10'000ull, 1ull << 30}) {
      for (const std::vector<uint64_t>& sizes : std::vector<std::vector<uint64_t>>{
               {1}, {300'000}, {300'000, 300'000}, {100'000, 7, 900'000}, {}}) {
        Schedule schedule(sizes, block, window, 60'001);
        std::vector<uint64_t> sent(sizes.size(), 0);
        std::optional<ChunkPlan> turn;
        for (;;) {
          if (!turn || turn->bytes == 0) {
            turn = schedule.NextTurn();
            if (!turn) break;
            // No turn reaches further beyond the lowest byte that is left than the window, or than one block.
            uint64_t lowest = ~uint64_t{0};
            for (size_t i = 0; i < sizes.size(); ++i)
              if (sent[i] < sizes[i]) lowest = std::min(lowest, sent[i]);
            const uint64_t block16 = std::lcm<uint64_t>(std::max<uint64_t>(block, 1), 16);
            EXPECT_TRUE(window == 0 || turn->offset + turn->bytes <= lowest + std::max(window, block16));
          }
          const std::optional<ChunkPlan> chunk = schedule.CutMessage(&*turn);
          ASSERT_EQ(chunk->offset, sent[chunk->operand]);
          ASSERT_GT(chunk->bytes, 0u);
          ASSERT_LE(chunk->bytes, 60'000u);
          ASSERT_TRUE((chunk->offset + chunk->bytes) % 16 == 0 ||
                      chunk->offset + chunk->bytes == sizes[chunk->operand]);
          sent[chunk->operand] += chunk->bytes;
        }
        EXPECT_EQ(sent, sizes);
        EXPECT_FALSE(schedule.NextTurn());
      }
    }
  }
}

TEST(Retry, KnowsWhatIsWorthIt) {
  constexpr Moved kNothing = Moved::kNothing;
  const auto next = [](const Status& status, Moved moved) {
    return Retry(5, std::nullopt).Next(status, moved).has_value();
  };
  EXPECT_TRUE(next(Busy("full", -1), kNothing));
  EXPECT_TRUE(next(Busy("no memory after all", -1), Moved::kOperands));
  EXPECT_FALSE(next(Busy("full", -1), Moved::kResults));
  EXPECT_TRUE(next(Status(Code::kUnavailable, "", ""), kNothing));
  EXPECT_FALSE(next(Status(Code::kUnavailable, "", ""), Moved::kOperands));
  EXPECT_FALSE(next(Status(Code::kUnavailable, "", ""), Moved::kResults));
  EXPECT_FALSE(next(Status(Code::kResourceExhausted, "LIMIT", ""), kNothing));
  EXPECT_FALSE(next(Status(Code::kInvalidArgument, "", ""), kNothing));
  EXPECT_FALSE(Retry(1, std::nullopt).Next(Busy("full", 0), kNothing));
  Retry retry(100, std::nullopt);
  EXPECT_EQ(retry.Next(Busy("full", 7), kNothing), 7ms);
  auto last = 0ms;
  for (int i = 0; i < 10; ++i) {
    const auto wait = retry.Next(Busy("full", -1), kNothing).value();
    EXPECT_LE(wait, 2400ms);
    EXPECT_TRUE(i >= 5 || wait > last);
    last = wait;
  }
  EXPECT_GE(last, 1600ms);
  std::stop_source stop;
  stop.request_stop();
  Retry::Sleep(1h, stop.get_token(), {});  // ends at once
}

}  // namespace
}  // namespace tilewire::client

// What the streams of one call share: every byte of output once, in any order.
#include <gtest/gtest.h>

#include <tuple>

#include "client/cpp/stripe.h"
#include "client/cpp/striped_call.h"

namespace tilewire::client {
namespace {

TEST(Stripe, TakesEveryOutputByteOnce) {
  const ResultSink sink = [](size_t, uint64_t, std::span<const uint8_t>) { return Status(); };
  const CallOptions options;
  Stripe stripe(sink, options, 0, {100});
  const std::vector<uint8_t> bytes(100);
  const auto deliver = [&](uint64_t offset, size_t count) {
    return std::string(stripe.Deliver(0, offset, {{bytes.data(), count}}).reason());
  };
  EXPECT_EQ(deliver(50, 10), "");
  EXPECT_EQ(deliver(0, 20), "");
  for (const auto& [offset, count] :
       std::vector<std::pair<uint64_t, size_t>>{{50, 10}, {59, 1}, {40, 11}, {45, 20}, {19, 1}, {0, 100}})
    EXPECT_EQ(deliver(offset, count), "BAD_REPLY") << offset << " + " << count;
  EXPECT_EQ(deliver(20, 30), "");
  EXPECT_EQ(deliver(60, 40), "");
  EXPECT_EQ(stripe.received(), 100u);
  EXPECT_EQ(deliver(99, 1), "BAD_REPLY");
  EXPECT_EQ(deliver(100, 1), "BAD_REPLY");
  EXPECT_EQ(deliver(~uint64_t{0}, 1), "BAD_REPLY");
}

TEST(Stripe, EachResultHasBytesOfItsOwn) {
  std::string came;
  const ResultSink sink = [&came](size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    came += std::to_string(result) + ":" + std::to_string(offset) + "+" + std::to_string(bytes.size()) + " ";
    return Status();
  };
  const CallOptions options;
  Stripe stripe(sink, options, 0, {8, 0, 100});
  const std::vector<uint8_t> bytes(100);
  const auto deliver = [&](size_t result, uint64_t offset, size_t count) {
    return std::string(stripe.Deliver(result, offset, {{bytes.data(), count}}).reason());
  };
  EXPECT_EQ(stripe.receive_total(), 108u);
  EXPECT_EQ(deliver(2, 8, 92), "");
  EXPECT_EQ(deliver(0, 0, 8), "");
  EXPECT_EQ(deliver(0, 8, 1), "BAD_REPLY") << "that is not the next result's";
  EXPECT_EQ(deliver(0, 0, 8), "BAD_REPLY");
  EXPECT_EQ(deliver(1, 0, 1), "BAD_REPLY");
  EXPECT_EQ(deliver(3, 0, 1), "BAD_REPLY");
  EXPECT_FALSE(stripe.complete());
  EXPECT_EQ(deliver(2, 0, 8), "");
  EXPECT_TRUE(stripe.complete());
  EXPECT_EQ(came, "2:8+92 0:0+8 2:0+8 ");
}

TEST(Stripe, ConnectionsFollowSizeAndCores) {
  constexpr int64_t kEach = 32 << 20;
  for (const auto& [bytes, cores, connections] :
       std::vector<std::tuple<int64_t, uint32_t, uint32_t>>{{0, 64, 1},
                                                            {2 * kEach - 1, 64, 1},
                                                            {2 * kEach, 64, 2},
                                                            {8 * kEach, 64, 8},
                                                            {1000 * kEach, 64, 8},
                                                            {1000 * kEach, 16, 8},
                                                            {1000 * kEach, 5, 2},
                                                            {1000 * kEach, 2, 1},
                                                            {1000 * kEach, 0, 1}})
    EXPECT_EQ(WorthwhileConnections(bytes, cores), connections) << bytes << " bytes, " << cores << " cores";
  using std::chrono::microseconds;
  EXPECT_EQ(WorthwhileConnections(1000 * kEach, 2, microseconds(1999)), 1u);
  EXPECT_EQ(WorthwhileConnections(1000 * kEach, 2, microseconds(2000)), 8u) << "from afar cores are no limit";
  EXPECT_EQ(WorthwhileConnections(kEach, 2, microseconds(40'000)), 4u) << "8 MiB each";
  EXPECT_EQ(WorthwhileConnections(kEach / 2 - 1, 2, microseconds(40'000)), 1u);
  EXPECT_EQ(CallOptions().connections, 0u) << "as many as are worth it, unless asked otherwise";
}

}  // namespace
}  // namespace tilewire::client

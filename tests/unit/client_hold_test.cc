// A server that is behind asks for more than the call that it refuses: a client holds others like it back.
#include "client/cpp/hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "kernels/array/busy.h"
#include "server/base/limits.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;
using testing::FakeBehaviour;
using testing::FakeServer;
using testing::Pair;

constexpr int64_t kSmallCount = 100, kBulkCount = 100'000;  // f32 of each of two operands

static_assert(Hold::kSmallBytes == kSmallJobBytes);

Status Refusal(std::string_view field, int64_t ms, std::string_view reason = "BUSY") {
  return Status({.code = Code::kResourceExhausted,
                 .reason = std::string(reason),
                 .message = "no",
                 .field = std::string(field),
                 .retry_after_ms = ms});
}

class ClientHold : public ::testing::Test {
 protected:
  /// Whether a call of two such operands is held back; for how long by its words.
  bool Holds(int64_t count, int64_t* ms = nullptr) {
    const Pair pair({count});
    const CallSpec spec{.task = Operation(),
                        .sources = {pair.A(), pair.B()},
                        .results = {},
                        .store = {},
                        .into = {},
                        .sink = sink_,
                        .options = options_,
                        .connect = connect_,
                        .deadline = {}};
    const Status status = hold_.Refuse(spec, now_);
    if (status.ok()) return false;
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_EQ(status.reason(), "BUSY");
    if (ms) *ms = status.detail()->retry_after_ms;
    return true;
  }

  Hold hold_;
  Hold::Clock::time_point now_ = Hold::Clock::now();
  const ResultSink sink_ = [](size_t, uint64_t, std::span<const uint8_t>) { return Status(); };
  const CallOptions options_;
  const ConnectOptions connect_;
};

TEST_F(ClientHold, LastsAsLongAsTheServerSaid) {
  EXPECT_FALSE(Holds(kSmallCount));
  hold_.Learn(Refusal(kSmallCallsWait, 40), now_);
  int64_t ms = 0;
  EXPECT_TRUE(Holds(kSmallCount, &ms));
  EXPECT_EQ(ms, 40);
  now_ += 39ms;
  EXPECT_TRUE(Holds(kSmallCount, &ms));
  EXPECT_EQ(ms, 1);
  now_ += 1ms;
  EXPECT_FALSE(Holds(kSmallCount));
}

TEST_F(ClientHold, SmallCallsAndLargerOnesAreApart) {
  hold_.Learn(Refusal(kSmallCallsWait, 40), now_);
  EXPECT_FALSE(Holds(kBulkCount));
  hold_.Learn(Refusal(kBulkCallsWait, 80), now_);
  EXPECT_TRUE(Holds(kBulkCount));
  now_ += 50ms;
  EXPECT_FALSE(Holds(kSmallCount));
  EXPECT_TRUE(Holds(kBulkCount));
}

TEST_F(ClientHold, ALaterEndIsNotForgottenForAnEarlierOne) {
  hold_.Learn(Refusal(kSmallCallsWait, 500), now_);
  hold_.Learn(Refusal(kSmallCallsWait, 5), now_);
  now_ += 400ms;
  EXPECT_TRUE(Holds(kSmallCount));
}

TEST_F(ClientHold, WhatConcernsOneCallHoldsNoOther) {
  hold_.Learn(Refusal("", 40), now_);
  hold_.Learn(Refusal("calls a second", 40), now_);
  hold_.Learn(Refusal(kSmallCallsWait, 40, "LIMIT"), now_);
  hold_.Learn(Refusal(kSmallCallsWait, -1), now_);
  hold_.Learn(Status(), now_);
  EXPECT_FALSE(Holds(kSmallCount));
}

TEST_F(ClientHold, IsNoLongerThanAMinuteWhateverTheServerSays) {
  hold_.Learn(Refusal(kSmallCallsWait, std::numeric_limits<int64_t>::max()), now_);
  EXPECT_TRUE(Holds(kSmallCount));
  now_ += 61s;
  EXPECT_FALSE(Holds(kSmallCount));
}

/// A minute: no test lasts as long.
FakeBehaviour BehindForAMinute() {
  FakeBehaviour behaviour;
  behaviour.busy = 1;
  behaviour.pushback_ms = 60'000;
  behaviour.busy_field = kSmallCallsWait;
  return behaviour;
}

TEST(ClientHeldBack, CallsLikeTheRefusedOneAreNotSent) {
  FakeServer server(BehindForAMinute());
  Client client = Client::Connect(server.address());
  const Pair small({kSmallCount}), large({kBulkCount});
  const CallOptions once{.form = CallForm::kUnary, .max_attempts = 1};
  EXPECT_EQ(client.Rmse(small.A(), small.B(), {}, once).error().reason(), "BUSY");
  EXPECT_EQ(server.log().calls, 1);
  const auto held = client.Rmse(small.A(), small.B(), {}, once);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().reason(), "BUSY");
  EXPECT_THAT(std::string(held.error().message()), ::testing::HasSubstr("not sent"));
  EXPECT_EQ(server.log().calls, 1);
  EXPECT_TRUE(client.Rmse(large.A(), large.B(), {}, once)) << "a larger one";
  EXPECT_TRUE(client.Rmse(small.A(), small.B(), {}, {.form = CallForm::kStream}))
      << "a stream waits its turn";
  EXPECT_TRUE(Client::Connect(server.address()).Rmse(small.A(), small.B(), {}, once)) << "another client";
}

TEST(ClientHeldBack, WaitsAsLongAndGoesOn) {
  FakeBehaviour behaviour = BehindForAMinute();
  behaviour.pushback_ms = 50;
  FakeServer server(behaviour);
  const auto start = Hold::Clock::now();
  Client client = Client::Connect(server.address());
  const Pair pair({kSmallCount});
  EXPECT_FALSE(client.Rmse(pair.A(), pair.B(), {}, {.form = CallForm::kUnary, .max_attempts = 1}));
  const auto reply = client.Rmse(pair.A(), pair.B(), {}, {.form = CallForm::kUnary});
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(server.log().calls, 2) << "the refused one, and one that was let in";
  EXPECT_GE(Hold::Clock::now() - start, 50ms);
}

TEST(ClientHeldBack, NobodyWaitsBeyondHisDeadline) {
  FakeServer server(BehindForAMinute());
  Client client = Client::Connect(server.address());
  const Pair pair({kSmallCount});
  const CallOptions soon{.timeout = 5s, .form = CallForm::kUnary};
  EXPECT_EQ(client.Rmse(pair.A(), pair.B(), {}, soon).error().reason(), "BUSY");
  EXPECT_EQ(client.Rmse(pair.A(), pair.B(), {}, soon).error().reason(), "BUSY");
  EXPECT_EQ(server.log().calls, 1);
}

}  // namespace
}  // namespace tilewire::client

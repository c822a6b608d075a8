// Resident arrays when things go wrong: unknown ids, servers that lie, answers that get lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;
using testing::FakeBehaviour;
using testing::FakeServer;
using testing::Pair;
using testing::Spec;
using Lie = FakeBehaviour::Lie;

Status Discard(uint64_t, std::span<const uint8_t>) {
  return {};
}

TEST(ClientArrayFailure, UnknownIdsAreNamed) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({300, 40});
  const auto expect = [](const Status& status, const std::string& field) {
    EXPECT_EQ(status.code(), Code::kNotFound);
    EXPECT_EQ(status.reason(), "ARRAY");
    ASSERT_NE(status.detail(), nullptr);
    EXPECT_EQ(status.detail()->field, field);
    EXPECT_EQ(status.detail()->value, "nowhere");
  };
  const ArraySource unknown = ArraySource::Resident("nowhere");
  expect(client.Rmse(pair.A(), unknown, {}, {.form = CallForm::kUnary}).error(), "b.array");
  expect(client.Rmse(pair.A(), unknown, {}, {.form = CallForm::kStream}).error(), "references[0].array");
  expect(client.Transpose(unknown, {}, Discard, {.form = CallForm::kStream}).error(), "array");
  expect(client.Get("nowhere", Discard).error(), "array");
  expect(client.Stat("nowhere").error(), "array");
  expect(client.Delete("nowhere"), "array");
  EXPECT_EQ(client.Put(unknown).error().detail()->field, "source");
  EXPECT_EQ(client.Get(pair.A(), Discard).error().detail()->field, "array");
}

TEST(ClientArrayFailure, WrongCallsFailBeforeAnythingIsSent) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({30, 40});
  const ArraySource named = ArraySource::Resident("x"),
                    known = ArraySource::Resident("x", Spec(DType::kF64, {30, 40}));
  EXPECT_EQ(client.Rmse(pair.A(), known).error().detail()->field, "b.dtype");
  EXPECT_EQ(client.Rmse(pair.A(), named, {{2}}).error().detail()->field, "axes");
  const ArraySource three[] = {named, named, named};
  for (const Operation& operation : {Operation(RmseOp{}), Operation(TransposeOp{}), Operation(GaussianOp{})})
    EXPECT_EQ(client.Store(operation, three).error().detail()->field, "operands");
  EXPECT_EQ(client.Execute(RmseOp{}, {three, 1}, Discard).error().detail()->field, "operands");
  EXPECT_EQ(server.log().calls + server.log().streams, 0);
}

TEST(ClientArrayFailure, LiesAreFoundOut) {
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream})
    for (const Lie lie : {Lie::kNoId, Lie::kWrongSpec, Lie::kStored}) {
      FakeBehaviour behaviour;
      FakeServer server;
      Client client = Client::Connect(server.address());
      const Pair pair({30, 40});
      behaviour.lie = lie;
      server.Behave(behaviour);
      const ArraySource operands[] = {pair.A()};
      if (lie == Lie::kStored) {
        EXPECT_EQ(client.Transpose(pair.A(), {}, Discard, {.form = form}).error().reason(), "BAD_REPLY");
      } else {
        EXPECT_EQ(client.Store(TransposeOp{}, operands, {}, {.form = form}).error().reason(), "BAD_REPLY");
        EXPECT_EQ(client.Put(pair.A()).error().reason(), "BAD_REPLY");
      }
    }
}

TEST(ClientArrayFailure, LiesAboutArraysAreFoundOut) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({300, 400});
  std::vector<OwnedArray> owned;
  for (int i = 0; i < 3; ++i) owned.push_back(std::move(client.Put(pair.A()).value().array));
  FakeBehaviour behaviour;
  for (const Lie lie : {Lie::kMissingOutput, Lie::kRepeatedOutput, Lie::kTooMuchOutput, Lie::kWrongSpec,
                        Lie::kNoResult, Lie::kNoOpened, Lie::kStored}) {
    behaviour.lie = lie;
    server.Behave(behaviour);
    EXPECT_EQ(client.Get(owned[0].source(), Discard).error().reason(), "BAD_REPLY") << static_cast<int>(lie);
  }
  behaviour.lie = Lie::kWrongSpec;
  server.Behave(behaviour);
  EXPECT_EQ(client.Stat(owned[0].id()).error().reason(), "BAD_REPLY");
  EXPECT_EQ(client.Get(owned[0].id(), Discard).error().reason(), "BAD_REPLY");
  behaviour.lie = Lie::kSamePage;
  behaviour.list_page = 1;
  server.Behave(behaviour);
  EXPECT_EQ(client.List().error().reason(), "BAD_REPLY");
  // A reply of unknown shape must still be what its spec says.
  behaviour.lie = Lie::kShortData;
  server.Behave(behaviour);
  const auto status =
      client.Transpose(ArraySource::Resident(owned[0].id()), {}, Discard, {.form = CallForm::kUnary});
  EXPECT_EQ(status.error().reason(), "BAD_REPLY");
  server.Behave({});
}

TEST(ClientArrayFailure, ALostAnswerLeavesNoSecondArray) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({30, 40});
  const auto a = client.Put(pair.A());
  FakeBehaviour behaviour;
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
    behaviour.lost = 2;
    server.Behave(behaviour);
    const ArraySource operands[] = {a->array.source()};
    const auto stored = client.Store(TransposeOp{}, operands, {}, {.form = form});
    ASSERT_TRUE(stored) << stored.error().ToString();
    EXPECT_EQ(stored->reply.attempts, 3);
    EXPECT_EQ(server.log().arrays, 2);
    const auto keys = server.log().keys;
    EXPECT_EQ(keys.back().size(), 32u);
    EXPECT_EQ(keys.back(), keys[keys.size() - 2]) << "a call's attempts have one key";
    EXPECT_NE(keys.back(), keys[0]) << "each call its own";
  }
  EXPECT_EQ(server.log().arrays, 1);
  // Once operand bytes went out the call is not repeated.
  behaviour.lost = 1;
  server.Behave(behaviour);
  EXPECT_EQ(client.Put(pair.A()).error().code(), Code::kUnavailable);
  // The user's key is the user's.
  ASSERT_TRUE(client.Put(pair.A(), {.idempotency_key = "mine"}));
  EXPECT_EQ(server.log().keys.back(), "mine");
}

TEST(ClientArrayFailure, QuestionsAreAskedAgainAndEndInTime) {
  FakeBehaviour behaviour;
  behaviour.unavailable = 2;
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({30, 40});
  const auto a = client.Put(pair.A());
  server.Behave(behaviour);
  EXPECT_TRUE(client.Stat(a->array.id()));
  server.Behave(behaviour);
  EXPECT_TRUE(client.List());
  server.Behave(behaviour);
  EXPECT_EQ(client.Stat(a->array.id(), {.max_attempts = 1}).error().code(), Code::kUnavailable);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(client.Stat(a->array.id(), {.stop = stop.get_token()}).error().code(), Code::kCancelled);
  behaviour = {};
  behaviour.silent = true;
  server.Behave(behaviour);
  EXPECT_EQ(client.Get(a->array.source(), Discard, {.timeout = 100ms}).error().code(),
            Code::kDeadlineExceeded);
  EXPECT_EQ(client.Delete(a->array.id(), {.timeout = 100ms}).code(), Code::kDeadlineExceeded);
  server.Behave({});
}

TEST(ClientArrayFailure, WhatBroughtBytesIsNotRepeated) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({300, 400});
  const auto a = client.Put(pair.A());
  const int calls = server.log().calls;
  const Sink refuse = [](uint64_t, std::span<const uint8_t>) {
    return Status(Code::kUnavailable, "SINK", "the sink has gone");
  };
  EXPECT_EQ(client.Transpose(a->array.source(), {}, refuse, {.form = CallForm::kUnary}).error().reason(),
            "SINK");
  EXPECT_EQ(server.log().calls - calls, 1);
  int pieces = 0;
  const int streams = server.log().streams;
  const auto reply = client.Get(a->array.source(), [&](uint64_t, std::span<const uint8_t>) {
    return ++pieces < 3 ? Status() : Status(Code::kUnavailable, "SINK", "the sink has gone");
  });
  EXPECT_EQ(reply.error().reason(), "SINK");
  EXPECT_EQ(pieces, 3);
  EXPECT_EQ(server.log().streams - streams, 1);
}

}  // namespace
}  // namespace tilewire::client

// Resident arrays: storing, bringing, asking; operands by id in both forms of call, alone and mixed.
#include <cmath>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using testing::FakeBehaviour;
using testing::FakeServer;
using ::testing::IsEmpty;
using testing::Pair;
using testing::Pattern;
using testing::Spec;

static_assert(!std::is_copy_constructible_v<OwnedArray> && !std::is_copy_assignable_v<OwnedArray>);
static_assert(std::is_nothrow_move_constructible_v<OwnedArray> && std::is_nothrow_destructible_v<OwnedArray>);

class ClientArrays : public ::testing::Test {
 protected:
  /// Everything of a result, in the order of its offsets.
  Sink Into(std::string* bytes) {
    return [bytes](uint64_t offset, std::span<const uint8_t> piece) {
      EXPECT_EQ(offset, bytes->size());
      bytes->append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return Status();
    };
  }
  std::string Fetched(const std::string& id) {
    std::string bytes;
    const auto reply = client_.Get(id, Into(&bytes));
    EXPECT_TRUE(reply) << reply.error().ToString();
    return bytes;
  }
  OwnedArray Stored(const ArraySource& source) {
    auto put = client_.Put(source);
    EXPECT_TRUE(put) << put.error().ToString();
    return put ? std::move(put->array) : OwnedArray();
  }
  ~ClientArrays() override { EXPECT_THAT(server_.log().mistakes, IsEmpty()); }

  FakeServer server_;
  Client client_ = Client::Connect(server_.address());
};

TEST_F(ClientArrays, PutAndGetKeepTheBytes) {
  for (const int64_t bytes : {1, 65'536, 65'537, 3'000'001}) {
    const ArraySpec spec = Spec(DType::kU8, {bytes});
    const std::string data = Pattern(static_cast<size_t>(bytes));
    const auto put =
        client_.Put(ArraySource::FromMemory(spec, data.data()), {.seconds = 60, .evictable = true});
    ASSERT_TRUE(put) << put.error().ToString();
    EXPECT_EQ(put->reply.array, put->array.id());
    EXPECT_EQ(put->array.spec(), spec);
    EXPECT_TRUE(put->reply.streamed);
    EXPECT_TRUE(Fetched(put->array.id()) == data);
    std::string direct;
    const int stats = server_.log().stats;
    ASSERT_TRUE(client_.Get(put->array.source(), Into(&direct)));
    EXPECT_TRUE(direct == data);
    EXPECT_EQ(server_.log().stats, stats) << "a handle knows what it is of";
    const auto info = client_.Stat(put->array.id());
    ASSERT_TRUE(info) << info.error().ToString();
    EXPECT_EQ(info->id, put->array.id());
    EXPECT_EQ(info->spec, spec);
    EXPECT_EQ(info->device_bytes, static_cast<uint64_t>(bytes) + 7);
    EXPECT_EQ(info->device, "cpu");
    EXPECT_TRUE(info->evictable);
    EXPECT_EQ(info->expires_seconds, 60);
    EXPECT_EQ(info->users, 2u);
  }
  EXPECT_EQ(server_.log().arrays, 0) << "each handle took its array with it";
}

TEST_F(ClientArrays, AStreamThatJoinsLateIsWaitedForWhenItBringsBytes) {
  const ArraySpec spec = Spec(DType::kU8, {400'000});
  const std::string data = Pattern(400'000);
  const OwnedArray array = Stored(ArraySource::FromMemory(spec, data.data()));
  FakeBehaviour behaviour;
  behaviour.late_joiner = true;
  server_.Behave(behaviour);
  std::string bytes;
  const auto reply = client_.Get(array.source(), Into(&bytes), {.connections = 2});
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(bytes == data);
}

TEST_F(ClientArrays, FortranFilesAreStoredInCOrder) {
  const testing::TempDir dir;
  testing::WriteFile(
      dir.File("f.npy"),
      testing::NpyBytes("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "abcdef"));
  const auto put = client_.Put(ArraySource::OpenNpy(dir.File("f.npy")).value());
  ASSERT_TRUE(put) << put.error().ToString();
  EXPECT_EQ(put->array.spec(), Spec(DType::kU8, {2, 3}));
  EXPECT_EQ(Fetched(put->array.id()), "acebdf");
}

TEST_F(ClientArrays, AHandleDeletesUnlessItGaveTheIdUp) {
  const Pair pair({10});
  std::string kept;
  {
    OwnedArray first = Stored(pair.A()), second = Stored(pair.A()), third = Stored(pair.B());
    EXPECT_EQ(server_.log().arrays, 3);
    kept = second.Release();
    EXPECT_FALSE(second);
    EXPECT_TRUE(second.Delete().ok());
    first = std::move(third);  // the first one goes
    EXPECT_EQ(server_.log().arrays, 2);
    EXPECT_FALSE(third);
    EXPECT_TRUE(first);
    OwnedArray moved(std::move(first));
    EXPECT_TRUE(moved.Delete().ok());
    EXPECT_EQ(server_.log().arrays, 1);
    EXPECT_FALSE(moved);
  }
  EXPECT_EQ(server_.log().arrays, 1);
  EXPECT_TRUE(Fetched(kept) == std::string(reinterpret_cast<const char*>(pair.a.data()), 40));
  EXPECT_TRUE(client_.Delete(kept).ok());
  const Status gone = client_.Delete(kept);
  EXPECT_EQ(gone.code(), Code::kNotFound);
  EXPECT_EQ(gone.reason(), "ARRAY");
  EXPECT_EQ(gone.detail()->field, "array");
  EXPECT_EQ(gone.detail()->value, kept);
}

TEST_F(ClientArrays, AHandleOutlivesItsClientAndItsServer) {
  OwnedArray orphan, widow;
  {
    FakeServer gone;
    Client client = Client::Connect(gone.address());
    const Pair pair({10});
    orphan = std::move(client.Put(pair.A()).value().array);
    widow = std::move(client.Put(pair.A()).value().array);
    { const Client ends = std::move(client); }
    orphan = OwnedArray();
    EXPECT_EQ(gone.log().arrays, 1);
  }
  EXPECT_EQ(widow.Delete().code(), Code::kUnavailable);
}

TEST_F(ClientArrays, OperandsMixInBothForms) {
  const Pair pair({30, 40});
  const OwnedArray a = Stored(pair.A()), b = Stored(pair.B());
  const ArraySource named = ArraySource::Resident(b.id());
  EXPECT_EQ(named.known_spec(), std::nullopt);
  EXPECT_EQ(named.wire_bytes(), 0u);
  const auto expected = client_.Rmse(pair.A(), pair.B(), {{1}});
  ASSERT_TRUE(expected);
  const int stats = server_.log().stats;
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream, CallForm::kAuto})
    for (const auto& [x, y] : {std::pair(pair.A(), named), std::pair(a.source(), pair.B()),
                               std::pair(a.source(), b.source()), std::pair(a.source(), named)}) {
      const auto reply = client_.Rmse(x, y, {{1}}, {.form = form});
      ASSERT_TRUE(reply) << reply.error().ToString();
      EXPECT_EQ(reply->values, expected->values);
      EXPECT_EQ(reply->reply.spec, Spec(DType::kF64, {30}));
      EXPECT_EQ(reply->reply.streamed, form == CallForm::kStream);
    }
  EXPECT_EQ(server_.log().stats, stats) << "one operand tells what the other must be";
}

TEST_F(ClientArrays, WhatIsNotKnownIsAskedForByStreamsAlone) {
  const Pair pair({30, 40});
  const OwnedArray a = Stored(pair.A()), b = Stored(pair.B());
  const ArraySource x = ArraySource::Resident(a.id()), y = ArraySource::Resident(b.id());
  const auto stats = [this] { return server_.log().stats; };
  ASSERT_EQ(stats(), 0);
  const auto unary = client_.Rmse(x, y, {{0}});
  ASSERT_TRUE(unary) << unary.error().ToString();
  EXPECT_EQ(unary->values.size(), 40u);
  EXPECT_FALSE(unary->reply.streamed);
  const auto one_value = client_.Rmse(x, y, {}, {.form = CallForm::kStream});
  ASSERT_TRUE(one_value);
  EXPECT_EQ(one_value->values, std::vector<double>{std::sqrt(pair.SumSquares() / 1200)});
  EXPECT_EQ(stats(), 0);
  const auto streamed = client_.Rmse(x, y, {{0}}, {.form = CallForm::kStream});
  ASSERT_TRUE(streamed) << streamed.error().ToString();
  EXPECT_EQ(streamed->values, unary->values);
  EXPECT_EQ(stats(), 2);
  std::string small, large;
  ASSERT_TRUE(client_.Transpose(x, {}, Into(&small)));
  EXPECT_EQ(stats(), 2);
  ASSERT_TRUE(client_.Transpose(x, {}, Into(&large), {.form = CallForm::kStream}));
  EXPECT_TRUE(small == large && small.size() == 4800);
  EXPECT_EQ(stats(), 3);
}

TEST_F(ClientArrays, OnlyWhatCrossesTheWireDecidesTheForm) {
  const Pair pair({1000, 1000});  // 4 MB each
  const OwnedArray a = Stored(pair.A()), b = Stored(pair.B());
  const auto reply = client_.Rmse(a.source(), b.source());
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_FALSE(reply->reply.streamed);
  EXPECT_EQ(reply->values, std::vector<double>{std::sqrt(pair.SumSquares() / 1e6)});
  EXPECT_TRUE(client_.Rmse(pair.A(), b.source()).value().reply.streamed);
  std::string out;
  const auto large = client_.Transpose(a.source(), {}, Into(&out));
  ASSERT_TRUE(large);
  EXPECT_TRUE(large->streamed);
  const ArraySource operands[] = {a.source()};
  const auto stored = client_.Store(TransposeOp{}, operands);
  ASSERT_TRUE(stored) << stored.error().ToString();
  EXPECT_FALSE(stored->reply.streamed) << "a stored result stays there";
  EXPECT_TRUE(Fetched(stored->array.id()) == out);
}

TEST_F(ClientArrays, AnUnknownResultTooLargeForOneMessageIsStreamed) {
  const Pair pair({300, 500});
  const OwnedArray a = Stored(pair.A());
  FakeBehaviour behaviour;
  behaviour.use_execute = true;
  std::string expected, out;
  ASSERT_TRUE(client_.Transpose(a.source(), {}, Into(&expected)));
  // Stat is a unary call too, but no operation: it is answered.
  server_.Behave(behaviour);
  const auto reply = client_.Transpose(ArraySource::Resident(a.id()), {}, Into(&out));
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(reply->streamed);
  EXPECT_TRUE(out == expected);
}

TEST_F(ClientArrays, ResultsStayInBothForms) {
  const Pair pair({30, 40});
  const OwnedArray b = Stored(pair.B());
  const auto expected = client_.Rmse(pair.A(), pair.B(), {{1}});
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
    const ArraySource operands[] = {pair.A(), ArraySource::Resident(b.id())};
    auto stored = client_.Store(RmseOp{{1}}, operands, {.seconds = 5}, {.form = form});
    ASSERT_TRUE(stored) << stored.error().ToString();
    EXPECT_EQ(stored->array.spec(), Spec(DType::kF64, {30}));
    EXPECT_EQ(stored->reply.numeric_version, "rmse.1");
    EXPECT_EQ(stored->reply.streamed, form == CallForm::kStream);
    EXPECT_EQ(client_.Stat(stored->array.id()).value().expires_seconds, 5);
    const std::string bytes = Fetched(stored->array.id());
    EXPECT_EQ(std::string_view(bytes),
              std::string_view(reinterpret_cast<const char*>(expected->values.data()), 240));
    // Nothing of the operands is known: the reply says what came of it.
    const ArraySource unknown[] = {ArraySource::Resident(stored->array.id())};
    const auto again = client_.Store(GaussianOp{0, 1}, unknown, {}, {.form = form});
    ASSERT_TRUE(again) << again.error().ToString();
    EXPECT_EQ(again->array.spec(), Spec(DType::kF64, {30}));
  }
  EXPECT_EQ(server_.log().arrays, 1);
}

TEST_F(ClientArrays, ListsHaveAllPages) {
  FakeBehaviour behaviour;
  behaviour.list_page = 3;
  server_.Behave(behaviour);
  EXPECT_THAT(client_.List().value().arrays, IsEmpty());
  const Pair pair({5});
  std::vector<OwnedArray> owned;
  for (int i = 0; i < 7; ++i) owned.push_back(Stored(pair.A()));
  const int before = server_.log().lists;
  const auto list = client_.List();
  ASSERT_TRUE(list) << list.error().ToString();
  ASSERT_EQ(list->arrays.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(list->arrays[i].id, owned[i].id());
  EXPECT_EQ(list->stored_bytes, 1000u);
  EXPECT_EQ(list->quota_bytes, 4000u);
  EXPECT_EQ(server_.log().lists - before, 3);
}

TEST_F(ClientArrays, EveryCallSaysWhoAsks) {
  Client named = Client::Connect(server_.address(), {.metadata = {{"who", "me"}}});
  const Pair pair({5});
  const auto expect_me = [this] { EXPECT_EQ(server_.log().who, "me"); };
  const auto forget = [this] {
    EXPECT_TRUE(client_.Describe());
    EXPECT_EQ(server_.log().who, "");
  };
  auto put = named.Put(pair.A());
  expect_me();
  forget();
  std::string bytes;
  ASSERT_TRUE(named.Get(put->array.source(), Into(&bytes)));
  expect_me();
  forget();
  ASSERT_TRUE(named.Rmse(put->array.source(), pair.A()));
  expect_me();
  forget();
  ASSERT_TRUE(named.List());
  expect_me();
  forget();
  ASSERT_TRUE(put->array.Delete().ok());
  expect_me();
}

}  // namespace
}  // namespace tilewire::client

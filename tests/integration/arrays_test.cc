// Arrays that stay on the device, from a client's side.
#include "tests/integration/arrays.h"
#include "tests/unit/engine_time_testing.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

class Arrays : public OnBoth {
 protected:
  TestServer server{device(), ArrayOptions()};
  ArrayCaller me{server}, other{server, "other"};
};
TILEWIRE_ON_BOTH(Arrays);

TEST_P(Arrays, ComeBackAsTheyWere) {
  std::vector<std::string> ids;
  for (const int64_t count : {1, 1000, 16'384, 16'385, 700'000}) {
    SCOPED_TRACE(count);
    const std::string bytes = Bytes(static_cast<size_t>(count) * 4, static_cast<uint64_t>(count));
    const auto put = me.Put(PutOpen(v1::DTYPE_F32, {count}), bytes);
    ASSERT_TRUE(put.status.ok()) << put.status.error_message();
    EXPECT_EQ(put.result.timing().bytes_in(), bytes.size());
    EXPECT_EQ(put.result.timing().bytes_out(), 0u);
    EXPECT_EQ(put.result.results(0).data(), "");
    const auto got = me.Get(put.id);
    ASSERT_TRUE(got.status.ok()) << got.status.error_message();
    EXPECT_TRUE(got.bytes == bytes);
    EXPECT_EQ(got.result.results(0).spec().shape(0), count);
    EXPECT_EQ(got.result.timing().bytes_in(), 0u);
    v1::ArrayInfo info;
    ASSERT_TRUE(me.Stat(put.id, &info).ok());
    EXPECT_EQ(info.array(), put.id);
    EXPECT_GE(info.device_bytes(), bytes.size());
    EXPECT_EQ(info.device(), "cpu");
    EXPECT_GT(info.expires_seconds(), 3000);
    ids.push_back(put.id);
  }
  v1::ListResponse first, rest;
  ASSERT_TRUE(me.List(3, "", &first).ok());
  ASSERT_EQ(first.arrays_size(), 3);
  ASSERT_TRUE(me.List(3, first.next_page(), &rest).ok());
  ASSERT_EQ(rest.arrays_size(), 2);
  EXPECT_EQ(rest.next_page(), "");
  EXPECT_EQ(first.next_page(), "4") << "where one's own go on, whatever others have";
  for (int i = 0; i < 5; ++i) EXPECT_EQ((i < 3 ? first.arrays(i) : rest.arrays(i - 3)).array(), ids[i]);
  ExpectOnlyArrays(server);
  EXPECT_EQ(first.stored_bytes(), server.engine().stats().array_bytes);
  for (const auto& id : ids) {
    ExpectError(other.Delete(id), StatusCode::NOT_FOUND, "ARRAY", "array", id);
    EXPECT_TRUE(me.Delete(id).ok());
    ExpectError(me.Delete(id), StatusCode::NOT_FOUND, "ARRAY", "array", id);
  }
  ExpectUnharmed(server);
}

TEST_P(Arrays, OperationsChainWithoutMovingBytes) {
  const std::vector<int64_t> shape{300, 1000}, turned{1000, 300};
  const std::string a = Floats(300'000, 1), b = Floats(300'000, 2);
  const auto put = me.Put(PutOpen(v1::DTYPE_F32, shape), a),
             reference = me.Put(PutOpen(v1::DTYPE_F32, turned), b);
  ASSERT_TRUE(put.status.ok() && reference.status.ok());
  ExpectOnlyArrays(server);
  const auto before = server.engine().stats();

  v1::Open open;
  open.mutable_transpose();
  open.mutable_options()->mutable_store();
  Refer(&open, 0, put.id);
  const auto transposed = me.Execute(open);
  ASSERT_TRUE(transposed.status.ok()) << transposed.status.error_message();
  EXPECT_EQ(transposed.result.numeric_version(), "transpose.1");
  EXPECT_EQ(transposed.result.timing().bytes_in() + transposed.result.timing().bytes_out(), 0u);
  EXPECT_EQ(transposed.result.timing().ranges(), 1u);

  v1::RmseRequest request;
  request.mutable_a()->set_array(transposed.id);
  request.mutable_b()->set_array(reference.id);
  v1::RmseResponse response;
  const auto status = me.kernels->Rmse(me.Context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.timing().bytes_in(), 0u);
  const std::string host = HostTranspose(a, DType::kF32, shape);
  EXPECT_TRUE(response.result().data() == HostRmse(host, b, DType::kF32, turned));
  const auto after = server.engine().stats();
  EXPECT_EQ(after.bytes_copied_in, before.bytes_copied_in);
  EXPECT_EQ(after.bytes_copied_out - before.bytes_copied_out, 8u) << "the value alone";
  EXPECT_TRUE(me.Get(transposed.id).bytes == host);
  EXPECT_TRUE(Eventually([&] {
    for (const auto& record : server.observer().records())
      if (record.method == "Arrays.Get" && record.operation == "get" && record.identity == "header:me")
        return true;
    return false;
  }));
}

TEST_P(Arrays, MixWithSentOperands) {
  const std::vector<int64_t> shape{300, 1000};
  const std::string a = Floats(300'000, 1), b = Floats(300'000, 2),
                    expected = HostRmse(a, b, DType::kF32, shape, {1});
  const auto put = me.Put(PutOpen(v1::DTYPE_F32, shape), b);
  ASSERT_TRUE(put.status.ok());
  v1::Open open = RmseOpen(v1::DTYPE_F32, shape, {1});
  Refer(&open, 1, put.id);
  const auto streamed = me.Execute(open, {a});
  ASSERT_TRUE(streamed.status.ok()) << streamed.status.error_message();
  EXPECT_TRUE(streamed.result.results(0).data() == expected);
  EXPECT_EQ(streamed.result.timing().bytes_in(), a.size());
  // Unary, small and not, and stored.
  for (const int64_t rows : {3, 300}) {
    const std::string x = a.substr(0, rows * 4000), y = b.substr(0, rows * 4000);
    const auto kept = me.Put(PutOpen(v1::DTYPE_F32, {rows, 1000}), y);
    v1::RmseRequest request = RmseCall({rows, 1000}, x, "");
    request.mutable_op()->add_axes(1);
    request.mutable_b()->set_array(kept.id);
    v1::RmseResponse response;
    ASSERT_TRUE(me.kernels->Rmse(me.Context().get(), request, &response).ok());
    EXPECT_TRUE(response.result().data() == HostRmse(x, y, DType::kF32, {rows, 1000}, {1}));
    request.mutable_options()->mutable_store();
    const auto status = me.kernels->Rmse(me.Context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.result().data(), "");
    EXPECT_TRUE(me.Get(response.result().array()).bytes == HostRmse(x, y, DType::kF32, {rows, 1000}, {1}));
  }
  ExpectOnlyArrays(server);
}

TEST_P(Arrays, SeveralStreamsCarryAGet) {
  const std::string bytes = Bytes(40'000'000, 3);
  const auto put = me.Put(PutOpen(v1::DTYPE_U8, {40'000'000}), bytes);
  ASSERT_TRUE(put.status.ok());
  const auto context = me.Context();
  v1::Opened opened;
  const auto first = me.BeginGet(context.get(), put.id, 2, &opened);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(opened.max_streams(), 2u);
  const auto joining = other.Context(), owner = me.Context();
  for (auto* joined : {joining.get(), owner.get()}) {
    const auto stream = me.kernels->Execute(joined);
    v1::ExecuteRequest join;
    join.mutable_join()->set_job(opened.job());
    stream->Write(join);
    stream->WritesDone();
    v1::ExecuteResponse answer;
    if (joined == joining.get()) {
      EXPECT_FALSE(stream->Read(&answer));
      ExpectError(stream->Finish(), StatusCode::NOT_FOUND, "JOB", "join.job");
      continue;
    }
    ASSERT_TRUE(stream->Read(&answer) && answer.has_joined());
    std::string out(bytes.size(), '\0');
    uint64_t taken = 0;
    const auto place = [&](const v1::ExecuteResponse& message) {
      if (!message.has_chunk()) return;
      taken += message.chunk().data().size();
      out.replace(message.chunk().offset(), message.chunk().data().size(), message.chunk().data());
    };
    while (stream->Read(&answer)) place(answer);
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_GT(taken, 0u);
    while (first->Read(&answer)) place(answer);
    EXPECT_TRUE(first->Finish().ok());
    EXPECT_EQ(taken, bytes.size());
    EXPECT_TRUE(out == bytes);
  }
}

TEST_P(Arrays, DrainingLetsThemBeFetched) {
  const std::string bytes = Floats(100'000, 3);
  const auto put = me.Put(PutOpen(v1::DTYPE_F32, {100'000}), bytes);
  ASSERT_TRUE(put.status.ok());
  server.rpc().BeginDrain();
  ExpectError(me.Put(PutOpen(v1::DTYPE_F32, {100'000}), bytes).status, StatusCode::UNAVAILABLE, "DRAINING");
  v1::TransposeRequest request;
  request.mutable_input()->set_array(put.id);
  v1::TransposeResponse response;
  ExpectError(me.kernels->Transpose(me.Context().get(), request, &response), StatusCode::UNAVAILABLE,
              "DRAINING");
  EXPECT_TRUE(me.Get(put.id).bytes == bytes);
  EXPECT_TRUE(me.Delete(put.id).ok());
  server.ExpectIdle();
}

TEST_P(Arrays, DeletedInUseTheyStayForWhoUsesThem) {
  const std::string bytes = Bytes(40'000'000, 3);  // more than flow control lets through
  const auto put = me.Put(PutOpen(v1::DTYPE_U8, {40'000'000}), bytes);
  ASSERT_TRUE(put.status.ok());
  v1::GetRequest request;
  request.set_array(put.id);
  const auto context = me.Context();
  const auto stream = me.arrays->Get(context.get(), request);
  v1::ExecuteResponse response;
  ASSERT_TRUE(stream->Read(&response) && response.has_opened());
  v1::ArrayInfo info;
  ASSERT_TRUE(me.Stat(put.id, &info).ok());
  EXPECT_EQ(info.users(), 1u);
  ASSERT_TRUE(me.Delete(put.id).ok());
  ExpectError(me.Get(put.id).status, StatusCode::NOT_FOUND, "ARRAY", "array", put.id);
  EXPECT_EQ(server.engine().stats().arrays_stored, 0u);
  EXPECT_GE(server.engine().stats().array_bytes, bytes.size());
  std::string out;
  while (stream->Read(&response)) out += response.has_chunk() ? response.chunk().data() : "";
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(out == bytes);
  EXPECT_TRUE(Eventually([&] { return server.engine().stats().array_bytes == 0; }));
  server.ExpectIdle();
}

TEST_P(Arrays, TheSameKeyStoresOnce) {
  const std::string bytes = Floats(500'000, 3);
  v1::Open open = PutOpen(v1::DTYPE_F32, {500'000});
  open.mutable_options()->mutable_store()->set_idempotency_key("k");
  const auto first = me.Put(open, bytes), again = me.Put(open, bytes), others = other.Put(open, bytes);
  ASSERT_TRUE(first.status.ok() && again.status.ok() && others.status.ok()) << again.status.error_message();
  EXPECT_EQ(first.id, again.id);
  EXPECT_NE(first.id, others.id);
  v1::Open differs = PutOpen(v1::DTYPE_F32, {5});
  *differs.mutable_options() = open.options();
  ExpectError(me.Put(differs, bytes.substr(0, 20)).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE",
              "options.store.idempotency_key");
  ExpectOnlyArrays(server);
  EXPECT_EQ(server.engine().stats().arrays_stored, 2u);
}

TEST_P(Arrays, Expire) {
  ManualTime time;
  auto options = ArrayOptions();
  options.engine.time = &time;
  TestServer timed(device(), options);
  ArrayCaller caller(timed);
  v1::Open open = PutOpen(v1::DTYPE_F32, {5});
  open.mutable_options()->mutable_store()->set_ttl_seconds(60);
  const auto put = caller.Put(open, Floats(5, 1));
  ASSERT_TRUE(put.status.ok());
  engine::testing::Pass(time, timed.engine().timer(), std::chrono::seconds(59));
  EXPECT_TRUE(caller.Stat(put.id).ok());
  engine::testing::Pass(time, timed.engine().timer(), std::chrono::seconds(1));
  EXPECT_EQ(timed.engine().stats().arrays_expired, 1u);
  ExpectError(caller.Stat(put.id), StatusCode::NOT_FOUND, "ARRAY", "array", put.id);
  ExpectUnharmed(timed);
}

}  // namespace
}  // namespace tilewire::testing

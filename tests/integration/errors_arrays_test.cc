// What is wrong about resident arrays, and who is told what.
#include "tests/integration/arrays.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

class ArrayErrors : public OnBoth {
 protected:
  ArrayErrors() { id = me.Put(PutOpen(v1::DTYPE_F32, {30, 40}), Floats(1200, 1)).id; }
  ~ArrayErrors() override {
    EXPECT_TRUE(me.Delete(id).ok()) << "it stayed, whatever happened";
    ExpectUnharmed(server);
  }
  /// An Open of an RMSE whose second operand is `array`.
  static v1::Open Against(const std::string& array, const std::vector<int64_t>& shape = {30, 40}) {
    v1::Open open = RmseOpen(v1::DTYPE_F32, shape);
    open.mutable_operands(1)->Clear();
    Refer(&open, 1, array);
    return open;
  }
  static TestServer::Options Options() {
    auto options = ArrayOptions();
    options.engine.store = {.bytes = 8 << 20, .bytes_per_identity = 5 << 20, .longest_seconds = 7200};
    return options;
  }
  TestServer server{device(), Options()};
  ArrayCaller me{server}, other{server, "other"};
  std::string id;
};
TILEWIRE_ON_STAGED(ArrayErrors);

TEST_P(ArrayErrors, UnknownForeignAndOthersArrays) {
  const std::string unknown = server.engine().instance() + "-0123456789abcdef", foreign = "0123-4567";
  const std::string field = "references[0].array";
  ExpectError(me.Execute(Against(unknown)).status, StatusCode::NOT_FOUND, "ARRAY", field, unknown);
  ExpectError(me.Execute(Against(foreign)).status, StatusCode::NOT_FOUND, "WRONG_INSTANCE", field, foreign);
  ExpectError(other.Execute(Against(id)).status, StatusCode::NOT_FOUND, "ARRAY", field, id);
  ExpectError(me.Execute(Against(std::string(65, 'x'))).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE",
              field, "65 characters");
  ExpectError(other.Get(id).status, StatusCode::NOT_FOUND, "ARRAY", "array", id);
  ExpectError(other.Stat(id), StatusCode::NOT_FOUND, "ARRAY", "array", id);
  ExpectError(me.Get(foreign).status, StatusCode::NOT_FOUND, "WRONG_INSTANCE", "array", foreign);
  ExpectError(me.Stat(""), StatusCode::NOT_FOUND, "WRONG_INSTANCE", "array", "");
  v1::ListResponse list;
  ASSERT_TRUE(other.List(0, "", &list).ok());
  EXPECT_EQ(list.arrays_size(), 0);
  EXPECT_EQ(list.stored_bytes(), 0u);
  EXPECT_EQ(list.quota_bytes(), 5u << 20);
  v1::TransposeRequest request;
  request.mutable_input()->set_array(unknown);
  v1::TransposeResponse response;
  ExpectError(me.kernels->Transpose(me.Context().get(), request, &response), StatusCode::NOT_FOUND, "ARRAY",
              "input.array", unknown);
}

TEST_P(ArrayErrors, ReferencesThatAreNeverRight) {
  const auto expect = [&](const v1::Open& open, const std::string& field, const std::string& value) {
    ExpectError(me.Execute(open).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE", field, value);
  };
  v1::Open open = Against(id);
  open.mutable_references(0)->set_operand(2);
  expect(open, "references[0].operand", "2");
  open = Against(id);
  Refer(&open, 1, id);
  expect(open, "references[1].operand", "1");
  expect(Against(id, {40, 30}), "b.shape", "(30, 40)");
  open = Against(id);
  SetSpec(open.mutable_operands(1), v1::DTYPE_F64, {30, 40});
  expect(open, "operands[1]", "f64 (30, 40)");
  open = Against(id);
  open.mutable_operands()->RemoveLast();  // left out is as good as empty
  EXPECT_TRUE(me.Execute(open, {Floats(1200, 2)}).status.ok());
  open.mutable_operands()->RemoveLast();  // but this one is to be sent
  expect(open, "open.operands", "0 specs");
  open = PutOpen(v1::DTYPE_F32, {30, 40});
  Refer(&open, 0, id);
  expect(open, "references[0]", id);
  // Bytes for an operand that needs none.
  ExpectError(me.Execute(Against(id), {Floats(1200, 2), "1234"}).status, StatusCode::INVALID_ARGUMENT,
              "BAD_VALUE", "chunk.operand", "1");
  v1::RmseRequest request = RmseCall({30, 40}, Floats(1200, 2), "1234");
  request.mutable_b()->set_array(id);
  v1::RmseResponse response;
  ExpectError(me.kernels->Rmse(me.Context().get(), request, &response), StatusCode::INVALID_ARGUMENT,
              "BAD_VALUE", "b.data", "4 bytes long");
}

TEST_P(ArrayErrors, PutsAndQuestionsThatAreNeverRight) {
  const std::string bytes = Floats(1200, 1);
  ExpectError(me.Put(RmseOpen(v1::DTYPE_F32, {30, 40}), bytes).status, StatusCode::INVALID_ARGUMENT,
              "BAD_VALUE", "open.operation", "no put");
  ExpectError(me.Put(v1::Open(), bytes).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE", "open.operation",
              "not set");
  for (const double seconds : {-1.0, 0.0005, 7201.0}) {
    v1::Open open = PutOpen(v1::DTYPE_F32, {30, 40});
    open.mutable_options()->mutable_store()->set_ttl_seconds(seconds);
    ExpectError(me.Put(open, bytes).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE",
                "options.store.ttl_seconds");
  }
  for (const std::string& key : {std::string(129, 'k'), std::string("two words")}) {
    v1::Open open = PutOpen(v1::DTYPE_F32, {30, 40});
    open.mutable_options()->mutable_store()->set_idempotency_key(key);
    ExpectError(me.Put(open, bytes).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE",
                "options.store.idempotency_key");
  }
  ExpectError(me.Put(PutOpen(v1::DTYPE_F32, {30, 40}), bytes.substr(4)).status, StatusCode::INVALID_ARGUMENT,
              "BYTES_MISSING");
  v1::ListResponse list;
  EXPECT_TRUE(me.List(1000, "", &list).ok()) << "as many as a page may have";
  ExpectError(me.List(1001, "", &list), StatusCode::INVALID_ARGUMENT, "BAD_VALUE", "page_size", "1001");
  for (const std::string page : {"x", "-1", "1x", "99999999999999999999999"})
    ExpectError(me.List(1, page, &list), StatusCode::INVALID_ARGUMENT, "BAD_VALUE", "page");
  v1::GetRequest get;
  get.set_array(id);
  get.mutable_options()->mutable_store();
  ExpectError(me.Get(get).status, StatusCode::INVALID_ARGUMENT, "BAD_VALUE", "options.store");
  const std::string method = "/tilewire.v1.Arrays/";
  for (const std::string name : {"Stat", "List", "Delete"}) {
    ByteCall broken(me.channel, method + name), large(me.channel, method + name);
    for (auto* call : {&broken, &large}) call->context.AddMetadata("who", "me");
    ExpectError(broken.Unary("\x0a\x7fshort").status, StatusCode::INVALID_ARGUMENT, "BAD_MESSAGE");
    ExpectError(large.Unary(std::string(70'000, '\0')).status, StatusCode::RESOURCE_EXHAUSTED, "LIMIT",
                "request");
  }
}

TEST_P(ArrayErrors, QuotasAreOfEachAndOfAll) {
  const int64_t mib = 1 << 18;  // in elements
  const auto put = [&](ArrayCaller& who, int64_t mebibytes, bool evictable = false) {
    v1::Open open = PutOpen(v1::DTYPE_F32, {mebibytes * mib});
    open.mutable_options()->mutable_store()->set_evictable(evictable);
    return who.Put(open, Bytes(static_cast<size_t>(mebibytes) << 20));
  };
  ExpectError(put(me, 6).status, StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "device bytes of the array");
  const auto kept = put(me, 4);
  ASSERT_TRUE(kept.status.ok()) << kept.status.error_message();
  ExpectError(put(me, 1).status, StatusCode::RESOURCE_EXHAUSTED, "BUSY");
  const auto goes = put(other, 3, true);
  ASSERT_TRUE(goes.status.ok()) << goes.status.error_message();
  EXPECT_EQ(server.engine().stats().arrays_evicted, 0u);
  const auto comes = put(other, 2, true);  // would fit `other`, but not all: the oldest goes
  ASSERT_TRUE(comes.status.ok()) << comes.status.error_message();
  EXPECT_EQ(server.engine().stats().arrays_evicted, 1u);
  ExpectError(other.Stat(goes.id), StatusCode::NOT_FOUND, "ARRAY", "array", goes.id);
  EXPECT_TRUE(me.Stat(kept.id).ok());
  EXPECT_TRUE(me.Delete(kept.id).ok());
  EXPECT_TRUE(other.Delete(comes.id).ok());
}

}  // namespace
}  // namespace tilewire::testing

// Kernels.Compute, and Operation in Open and DescribeKernels: the same answers as by the fields of the first
// version, the same refusals, and a word to who uses both.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "tests/integration/arrays.h"
#include "tests/integration/helpers.h"
#include "tests/integration/regions.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kOddShape{37, 111};
constexpr size_t kOddElements = 37 * 111;

v1::Operation OperationOf(const v1::Open& open) {
  v1::Operation operation;
  if (open.has_rmse()) *operation.mutable_rmse() = open.rmse();
  if (open.has_transpose()) *operation.mutable_transpose() = open.transpose();
  if (open.has_gaussian_pdf()) *operation.mutable_gaussian_pdf() = open.gaussian_pdf();
  return operation;
}

/// A job of each operation, as the first version's clients open it, and the bytes of its result.
struct Example {
  v1::Open open;
  std::vector<std::string> operands;
};

std::vector<Example> Examples() {
  const std::string a = Floats(kOddElements, 1), b = Floats(kOddElements, 2);
  return {{RmseOpen(v1::DTYPE_F32, kOddShape), {a, b}},
          {RmseOpen(v1::DTYPE_F32, kOddShape, {0}), {a, b}},
          {TransposeOpen(v1::DTYPE_F32, kOddShape), {a}},
          {GaussianOpen(v1::DTYPE_F32, kOddShape, 0.5, 0.25), {a}}};
}

v1::ComputeRequest RequestOf(const Example& example) {
  v1::ComputeRequest request;
  *request.mutable_operation() = OperationOf(example.open);
  for (size_t i = 0; i < example.operands.size(); ++i) {
    v1::Operand* const operand = request.add_operands();
    *operand->mutable_spec() = example.open.operands(static_cast<int>(i));
    operand->set_data(example.operands[i]);
  }
  return request;
}

grpc::Status Compute(const TestServer& server, const v1::ComputeRequest& request,
                     v1::ComputeResponse* response) {
  grpc::ClientContext context;
  return v1::Kernels::NewStub(server.Connect())->Compute(&context, request, response);
}

/// The result's bytes, by Execute.
std::string Executed(const TestServer& server, const v1::Open& open, const std::vector<std::string>& operands,
                     std::string* version) {
  RawStream raw(server.Connect());
  EXPECT_TRUE(raw.Open(open));
  for (size_t i = 0; i < operands.size(); ++i)
    EXPECT_TRUE(raw.SendAll(static_cast<uint32_t>(i), operands[i]));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  *version = raw.result.numeric_version();
  return raw.output;
}

TEST(Compute, AnswersAsExecuteDoes) {
  TestServer server;
  for (const Example& example : Examples()) {
    std::string version, again;
    const std::string bytes = Executed(server, example.open, example.operands, &version);
    v1::Open open = example.open;
    open.clear_operation();
    *open.mutable_op() = OperationOf(example.open);
    EXPECT_EQ(Executed(server, open, example.operands, &again), bytes);
    EXPECT_EQ(again, version);

    v1::ComputeResponse response;
    const auto status = Compute(server, RequestOf(example), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.results_size(), 1);
    EXPECT_EQ(response.results(0).data(), bytes);
    EXPECT_FALSE(version.empty());
    EXPECT_EQ(response.numeric_version(), version);
    EXPECT_GT(response.timing().wall_us(), 0);
  }
  std::vector<std::string> computed;  // a call is on record soon after its reply
  EXPECT_TRUE(Eventually([&] {
    computed.clear();
    for (const auto& record : server.observer().records())
      if (record.method == "Kernels.Compute") computed.push_back(record.operation);
    return computed.size() >= 4;
  }));
  EXPECT_THAT(computed, ::testing::ElementsAre("rmse", "rmse", "transpose", "gaussian_pdf"));
  ExpectUnharmed(server);
}

TEST(Compute, OperandsAndResultsMayStayAtTheServer) {
  TestServer server;
  ArrayCaller calls(server);
  const std::string a = Floats(kOddElements, 1), b = Floats(kOddElements, 2);
  const auto put = calls.Put(PutOpen(v1::DTYPE_F32, kOddShape), b);
  ASSERT_TRUE(put.status.ok()) << put.status.error_message();
  v1::ComputeRequest request = RequestOf({RmseOpen(v1::DTYPE_F32, kOddShape, {1}), {a, b}});
  request.mutable_operands(1)->Clear();
  request.mutable_operands(1)->set_array(put.id);
  v1::ComputeResponse response;
  auto status = Compute(server, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.results(0).data(), HostRmse(a, b, DType::kF32, kOddShape, {1}));

  request = RequestOf({TransposeOpen(v1::DTYPE_F32, kOddShape), {a}});
  request.mutable_options()->mutable_store();
  status = Compute(server, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_TRUE(response.results(0).data().empty());
  EXPECT_EQ(calls.Get(response.results(0).array()).bytes, HostTranspose(a, DType::kF32, kOddShape));
}

TEST(Compute, WrongRequestsAreNamed) {
  TestServer server;
  const std::string a = Floats(kOddElements, 1);
  const v1::ComputeRequest rmse = RequestOf({RmseOpen(v1::DTYPE_F32, kOddShape), {a, a}});
  struct Bad {
    std::function<void(v1::ComputeRequest*)> change;
    std::string field, value, allowed;
  };
  const Bad bads[] = {
      {[](auto* r) { r->clear_operation(); }, "operation", "not set", rpc::OperationNames()},
      {[](auto* r) { r->mutable_operation()->Clear(); }, "operation", "not set", "*"},
      {[](auto* r) { r->mutable_operands()->RemoveLast(); }, "operands", "1 specs", "2"},
      {[](auto* r) { r->mutable_operation()->mutable_transpose(); }, "operands", "2 specs", "1"},
      {[](auto* r) { r->mutable_operands(1)->mutable_data()->pop_back(); }, "operands[1].data", "*", "*"},
      {[](auto* r) { r->mutable_operands(1)->mutable_spec()->set_dtype(v1::DType(77)); },
       "operands[1].spec.dtype", "77", "*"},
      {[](auto* r) { r->mutable_operation()->mutable_rmse()->add_axes(9); }, "axes", "9", "-2 to 1"},
      {[](auto* r) { r->mutable_operands(0)->set_array("x"); }, "operands[0].data", "*", "*"},
  };
  for (const Bad& bad : bads) {
    v1::ComputeRequest request = rmse;
    bad.change(&request);
    v1::ComputeResponse response;
    ExpectError(Compute(server, request, &response), kInvalid, "BAD_VALUE", bad.field, bad.value,
                bad.allowed);
  }
  v1::ComputeRequest many = rmse;
  while (many.operands_size() < 9) *many.add_operands() = rmse.operands(0);
  v1::ComputeResponse response;
  ExpectError(Compute(server, many, &response), kInvalid, "BAD_MESSAGE");
  ExpectUnharmed(server);
}

/// The one thread of calls remembers what requests say beside their bytes: each has its own answer all the
/// same.
TEST(Compute, WhatIsAskedAgainIsNotMistaken) {
  TestServer::Options options;
  options.rpc.queues = 1;
  TestServer server(options);
  const auto answer = [&](const v1::ComputeRequest& request) {
    v1::ComputeResponse response;
    const auto status = Compute(server, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.results(0);
  };
  for (const Example& first : Examples()) {
    Example other = first, turned = first;
    other.operands[0] = Floats(kOddElements, 3);
    for (auto& spec : *turned.open.mutable_operands())  // as many bytes
      SetSpec(&spec, v1::DTYPE_F32, {kOddShape[1], kOddShape[0]});
    v1::ComputeRequest longer = RequestOf(first);
    longer.mutable_operands(0)->mutable_data()->append(4, '\0');
    for (int round = 0; round < 3; ++round) {
      for (const Example& example : {first, other, turned}) {
        std::string version;
        const std::string expected = Executed(server, example.open, example.operands, &version);
        EXPECT_EQ(answer(RequestOf(example)).data(), expected);
      }
      v1::ComputeResponse response;
      ExpectError(Compute(server, longer, &response), kInvalid, "BAD_VALUE", "operands[0].data");
    }
  }
  ArrayCaller calls(server);
  const auto put = calls.Put(PutOpen(v1::DTYPE_F32, kOddShape), Examples()[0].operands[1]);
  v1::ComputeRequest resident = RequestOf(Examples()[0]);
  resident.mutable_operands(1)->Clear();
  resident.mutable_operands(1)->set_array(put.id);
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(answer(resident).data(), answer(RequestOf(Examples()[0])).data());
  EXPECT_TRUE(calls.Delete(put.id).ok());
  v1::ComputeResponse gone;
  ExpectError(Compute(server, resident, &gone), grpc::StatusCode::NOT_FOUND, "ARRAY", "operands[1].array");

  v1::ComputeRequest stored = RequestOf(Examples()[2]);
  stored.mutable_options()->mutable_store();
  EXPECT_NE(answer(stored).array(), answer(stored).array());
}

TEST(Compute, WhatOneCallerMayAskAnotherMayNot) {
  auto options = ArrayOptions();
  options.rpc.queues = 1;
  TestServer server(options);
  ArrayCaller me(server), other(server, "other");
  const std::string a = Floats(kOddElements, 1);
  const std::string id = me.Put(PutOpen(v1::DTYPE_F32, kOddShape), a).id;
  v1::ComputeRequest request = RequestOf({RmseOpen(v1::DTYPE_F32, kOddShape), {a, a}});
  request.mutable_operands(1)->Clear();
  request.mutable_operands(1)->set_array(id);
  v1::ComputeResponse response;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(me.kernels->Compute(me.Context().get(), request, &response).ok());
    ExpectError(other.kernels->Compute(other.Context().get(), request, &response),
                grpc::StatusCode::NOT_FOUND, "ARRAY", "operands[1].array", id);
  }
}

/// What comes from a region comes block by block, also for a unary call.
TEST(Compute, OfRegionsThatDoNotFitPassesThroughAWindow) {
  auto options = RegionOptions();
  options.engine.device_bytes = 16 << 20;
  options.engine.block_bytes = 1 << 20;
  TestServer server(options);
  RegionCaller caller(server);
  constexpr int64_t kElements = 4 << 20;
  const std::string sent = Floats(1000, 7);
  SharedFile input(kElements * 4), output(kElements * 4);
  for (size_t at = 0; at < input.bytes(); at += sent.size())
    std::memcpy(input.data() + at, sent.data(), std::min(sent.size(), input.bytes() - at));
  v1::ComputeRequest request;
  *request.mutable_operation() = OperationOf(GaussianOpen(v1::DTYPE_F32, {kElements}, 0.5, 0.25));
  SetSpec(request.add_operands()->mutable_spec(), v1::DTYPE_F32, {kElements});
  At(request.mutable_operands(0)->mutable_region(), caller.Register(input), 0);
  At(request.mutable_options()->mutable_result_region(), caller.Register(output), 0);
  v1::ComputeResponse response, first;
  const auto status = caller.kernels->Compute(caller.Context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::ComputeRequest small = RequestOf({GaussianOpen(v1::DTYPE_F32, {1000}, 0.5, 0.25), {sent}});
  ASSERT_TRUE(caller.kernels->Compute(caller.Context().get(), small, &first).ok());
  const std::string& expected = first.results(0).data();
  for (size_t at = 0; at < output.bytes(); at += expected.size())
    ASSERT_EQ(
        std::memcmp(output.data() + at, expected.data(), std::min(expected.size(), output.bytes() - at)), 0);
}

TEST(Compute, TwoOperationsInOneRequestAreRefused) {
  TestServer server;
  for (const Example& example : Examples()) {
    v1::Open open = example.open;
    *open.mutable_op() = OperationOf(example.open);
    RawStream raw(server.Connect());
    EXPECT_FALSE(raw.Open(open));
    ExpectError(raw.Drain(), kInvalid, "BAD_VALUE", "op", "*", "one of them");
  }
  v1::Open put = PutOpen(v1::DTYPE_F32, kOddShape);
  put.mutable_op()->mutable_transpose();
  RawStream raw(server.Connect());
  EXPECT_FALSE(raw.Open(put));
  ExpectError(raw.Drain(), kInvalid, "BAD_VALUE", "op");

  v1::DescribeKernelsRequest question;
  question.mutable_transpose();
  SetSpec(question.add_operands(), v1::DTYPE_F32, kOddShape);
  const auto stub = v1::Device::NewStub(server.Connect());
  const auto ask = [&] {
    grpc::ClientContext context;
    v1::DescribeKernelsResponse response;
    return stub->DescribeKernels(&context, question, &response);
  };
  EXPECT_TRUE(ask().ok());
  question.mutable_op()->mutable_transpose();
  ExpectError(ask(), kInvalid, "BAD_VALUE", "op");
  question.clear_operation();
  EXPECT_TRUE(ask().ok());
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

// Gaussian pdf and kernel questions through the library.
#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "kernels/gaussian/gaussian.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using testing::FakeBehaviour;
using testing::FakeServer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Pattern;
using testing::Spec;

std::string OnHost(const ArraySpec& spec, const std::string& in, const GaussianOp& op) {
  const auto plan = gaussian::Plan::Make(spec, op.mean, op.stddev).value();
  std::string out(in.size(), '\0');
  gaussian::HostRange(plan, plan.whole(), 0, gaussian::HostItems(plan, plan.whole()), in.data(), out.data());
  return out;
}

/// Collects a result and checks that it comes in order.
Result<Reply> Call(Client& client, const ArraySource& source, const GaussianOp& op, std::string* out,
                   const CallOptions& options = {}) {
  out->clear();
  const Sink sink = [out](uint64_t offset, std::span<const uint8_t> bytes) {
    EXPECT_EQ(offset, out->size());
    out->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status();
  };
  return client.GaussianPdf(source, op, sink, options);
}

TEST(ClientGaussian, EveryFormGivesTheHostKernelsBits) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const GaussianOp op{.mean = -1.25, .stddev = 0.3};
  for (const auto& [dtype, dims] : std::vector<std::pair<DType, std::vector<int64_t>>>{
           {DType::kF32, {}}, {DType::kF64, {}}, {DType::kF32, {1009}}, {DType::kF64, {17, 19}}}) {
    const ArraySpec spec = Spec(dtype, dims);
    const std::string in = Pattern(static_cast<size_t>(spec.bytes()));
    for (const CallForm form : {CallForm::kAuto, CallForm::kUnary, CallForm::kStream}) {
      std::string out;
      const auto reply = Call(client, ArraySource::FromMemory(spec, in.data()), op, &out, {.form = form});
      ASSERT_TRUE(reply) << reply.error().ToString();
      EXPECT_EQ(reply->spec, spec);
      EXPECT_EQ(reply->numeric_version, "gaussian.1");
      EXPECT_EQ(reply->streamed, form == CallForm::kStream);
      EXPECT_TRUE(out == OnHost(spec, in, op));
    }
  }
  EXPECT_THAT(server.log().mistakes, IsEmpty());
}

TEST(ClientGaussian, LargeArraysStream) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const ArraySpec spec = Spec(DType::kF32, {701'003});
  const std::string in = Pattern(static_cast<size_t>(spec.bytes()));
  std::string out;
  const auto reply = Call(client, ArraySource::FromMemory(spec, in.data()), {}, &out);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(reply->streamed);
  EXPECT_TRUE(out == OnHost(spec, in, {}));
  EXPECT_THAT(server.log().mistakes, IsEmpty());
}

TEST(ClientGaussian, FortranFilesGiveCOrder) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const testing::TempDir dir;
  const std::vector<float> c{1, 2, 3, 4, 5, 6}, f{1, 4, 2, 5, 3, 6};  // 2 x 3 in both orders
  testing::WriteFile(dir.File("f.npy"),
                     testing::NpyBytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                       std::string(reinterpret_cast<const char*>(f.data()), 24)));
  const auto source = ArraySource::OpenNpy(dir.File("f.npy"));
  ASSERT_TRUE(source && source->fortran_order());
  std::string out;
  const auto reply = Call(client, *source, {}, &out);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->spec, Spec(DType::kF32, {2, 3}));
  EXPECT_TRUE(out ==
              OnHost(Spec(DType::kF32, {6}), std::string(reinterpret_cast<const char*>(c.data()), 24), {}));
}

TEST(ClientGaussian, WrongCallsNeverReachTheServer) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const std::vector<double> data(4);
  const auto error = [&](DType dtype, const GaussianOp& op) {
    std::string out;
    const auto reply = Call(client, ArraySource::FromMemory(Spec(dtype, {2}), data.data()), op, &out);
    return reply ? "accepted" : reply.error().ToString();
  };
  for (const DTypeInfo& info : AllDTypes()) {
    const std::string got = error(info.dtype, {});
    const bool known = info.dtype == DType::kF32 || info.dtype == DType::kF64;
    EXPECT_EQ(got, known ? "accepted"
                         : "INVALID_ARGUMENT: dtype is " + std::string(info.name) + "; allowed: f32 or f64");
  }
  const int before = server.log().calls;
  const double inf = std::numeric_limits<double>::infinity();
  for (const double stddev : {0.0, -1.0, inf, std::nan("")})
    EXPECT_THAT(error(DType::kF32, {0, stddev}), HasSubstr("any finite number greater than 0")) << stddev;
  for (const double mean : {inf, -inf, std::nan("")})
    EXPECT_THAT(error(DType::kF64, {mean, 1}), HasSubstr("mean is ")) << mean;
  const Sink sink = [](uint64_t, std::span<const uint8_t>) { return Status(); };
  EXPECT_THAT(client.Execute(GaussianOp{}, {}, sink).error().ToString(), HasSubstr("operands is 0"));
  EXPECT_EQ(server.log().calls, before);
  EXPECT_EQ(server.log().streams, 0);
}

TEST(ClientKernels, EveryFieldOfQuestionAndAnswer) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const auto catalogue = client.DescribeKernels();
  ASSERT_TRUE(catalogue) << catalogue.error().ToString();
  EXPECT_EQ(catalogue->device, "cuda:7");
  ASSERT_EQ(catalogue->launches.size(), 2u);
  const auto& [group, operation, part, kernel] = catalogue->launches[0];
  EXPECT_EQ(group, "rmse");
  EXPECT_EQ(operation, "rmse f32 (64, 64)");
  EXPECT_EQ(part, "range 0 of 1");
  EXPECT_EQ(kernel.name, "") << "no operation was asked for";
  EXPECT_EQ(kernel.registers, 40);
  EXPECT_EQ(kernel.local_bytes, 8);
  EXPECT_EQ(kernel.static_shared_bytes, 1024);
  EXPECT_EQ(kernel.dynamic_shared_bytes, 2048);
  EXPECT_EQ(kernel.const_bytes, 16);
  EXPECT_EQ(kernel.max_threads_per_block, 1024);
  EXPECT_EQ(kernel.binary_version, 90);
  EXPECT_EQ(kernel.ptx_version, 75);
  EXPECT_THAT(kernel.grid, ::testing::ElementsAre(132, 2, 1));
  EXPECT_THAT(kernel.block, ::testing::ElementsAre(132, 2, 1));
  EXPECT_EQ(kernel.blocks_per_multiprocessor, 6);
  EXPECT_EQ(kernel.occupancy, 0.75);
  EXPECT_EQ(catalogue->launches[1].group, "ladder/rmse");

  const ArraySpec specs[] = {Spec(DType::kF32, {4, 5}), Spec(DType::kF32, {4, 5})};
  const auto question = [&](const Operation& op, size_t operands) {
    const auto answer = client.DescribeKernels(op, std::span(specs).first(operands));
    return answer ? answer->launches[0].kernel.name : answer.error().ToString();
  };
  const std::string operand = "operands { dtype: DTYPE_F32 shape: 4 shape: 5 }";
  EXPECT_EQ(question(RmseOp{{-1}}, 2), "rmse { axes: -1 } " + operand + " " + operand);
  EXPECT_EQ(question(TransposeOp{{1, 0}}, 1), "transpose { axes: 1 axes: 0 } " + operand);
  EXPECT_EQ(question(GaussianOp{0, 2}, 1), "gaussian_pdf { stddev: 2 } " + operand);
}

TEST(ClientKernels, TheCpuHasNoneAndSilentServersEnd) {
  FakeBehaviour cpu, silent;
  cpu.no_kernels = true;
  silent.silent = true;
  FakeServer server(cpu), mute(silent);
  const auto none = Client::Connect(server.address()).DescribeKernels();
  ASSERT_TRUE(none);
  EXPECT_EQ(none->device, "cpu");
  EXPECT_TRUE(none->launches.empty());
  const auto late =
      Client::Connect(mute.address()).DescribeKernels({.timeout = std::chrono::milliseconds(200)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace tilewire::client

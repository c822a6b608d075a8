// The gaussian pdf over sockets: right bits in both forms, every wrong request by name, and output that
// leaves while input still arrives.
#include <cmath>
#include <limits>

#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

v1::GaussianPdfRequest GaussianCall(v1::DType dtype, const std::vector<int64_t>& shape,
                                    const std::string& data, double mean = 0, double stddev = 1) {
  v1::GaussianPdfRequest request;
  request.mutable_op()->set_mean(mean);
  request.mutable_op()->set_stddev(stddev);
  SetSpec(request.mutable_input()->mutable_spec(), dtype, shape);
  request.mutable_input()->set_data(data);
  return request;
}

/// Elements of a range of large f32 arrays.
int64_t RangeElements() {
  return gaussian::Plan::Make(MakeSpec(DType::kF32, std::array{int64_t{1} << 24}).value(), 0, 1)
      ->range(0)
      .end;
}

class Gaussian : public OnBoth {};
TILEWIRE_ON_BOTH(Gaussian);

TEST_P(Gaussian, UnaryGivesTheHostKernelsBits) {
  TestServer server(device(), {});
  const auto stub = v1::Kernels::NewStub(server.Connect());
  for (const auto& [dtype, shape] : std::vector<std::pair<v1::DType, std::vector<int64_t>>>{
           {v1::DTYPE_F32, {}},
           {v1::DTYPE_F64, {}},
           {v1::DTYPE_F32, {4099}},
           {v1::DTYPE_F64, {31, 37}},
           {v1::DTYPE_F32, {900, 1009}}}) {  // the last one: 15 blocks
    const auto ours = static_cast<DType>(dtype);
    const std::string in = Bytes(MakeSpec(ours, shape)->bytes(), 7);  // any bits, NaN and infinities too
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::GaussianPdfResponse response;
    const auto status = stub->GaussianPdf(&context, GaussianCall(dtype, shape, in, -0.5, 3), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(response.result().data() == HostGaussian(in, ours, shape, -0.5, 3))
        << Name(ours) << shape.size();
    EXPECT_EQ(response.result().spec().dtype(), dtype);
    EXPECT_EQ(response.result().spec().shape_size(), static_cast<int>(shape.size()));
    EXPECT_EQ(response.numeric_version(), "gaussian.1");
    EXPECT_EQ(response.timing().bytes_in(), in.size());
    EXPECT_EQ(response.timing().bytes_out(), in.size());
  }
  ASSERT_TRUE(Eventually([&] { return server.observer().records().size() == 5; }));
  EXPECT_EQ(server.observer().records()[0].method, "Kernels.GaussianPdf");
  EXPECT_EQ(server.observer().records()[0].operation, "gaussian_pdf");
  ExpectUnharmed(server);
}

TEST_P(Gaussian, KnownValues) {
  TestServer server(device(), {});
  const double in[] = {0, 1, -1, kInf, -kInf, 38.5};
  grpc::ClientContext context;
  v1::GaussianPdfResponse response;
  const auto status =
      v1::Kernels::NewStub(server.Connect())
          ->GaussianPdf(
              &context,
              GaussianCall(v1::DTYPE_F64, {6}, std::string(reinterpret_cast<const char*>(in), sizeof(in))),
              &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  double out[6];
  ASSERT_EQ(response.result().data().size(), sizeof(out));
  std::memcpy(out, response.result().data().data(), sizeof(out));
  EXPECT_DOUBLE_EQ(out[0], 0.3989422804014327);
  EXPECT_DOUBLE_EQ(out[1], 0.24197072451914337);
  EXPECT_EQ(out[2], out[1]);
  EXPECT_EQ(out[3], 0);
  EXPECT_EQ(out[4], 0);
  EXPECT_FALSE(std::signbit(out[3]) || std::signbit(out[4]));
  EXPECT_GT(out[5], 0);
  EXPECT_LT(out[5], std::numeric_limits<double>::min()) << "subnormal";
}

struct Bad {
  const char* name;
  std::function<void(v1::GaussianPdfRequest*)> change;
  std::string field, value, allowed;
};

std::vector<Bad> BadRequests() {
  const std::string over_zero = "any finite number greater than 0", finite = "any finite number";
  const auto mean = [](double value) { return [value](auto* r) { r->mutable_op()->set_mean(value); }; };
  const auto stddev = [](double value) { return [value](auto* r) { r->mutable_op()->set_stddev(value); }; };
  const auto dtype = [](v1::DType value) {
    return [value](auto* r) { r->mutable_input()->mutable_spec()->set_dtype(value); };
  };
  std::vector<Bad> all{
      {"no op", [](auto* r) { r->clear_op(); }, "op", "not set", "a GaussianOp: mean and stddev"},
      {"stddev absent", [](auto* r) { r->mutable_op()->clear_stddev(); }, "stddev", "0", over_zero},
      {"stddev 0", stddev(0), "stddev", "0", over_zero},
      {"stddev -0", stddev(-0.0), "stddev", "-0", over_zero},
      {"stddev negative", stddev(-1.5), "stddev", "-1.5", over_zero},
      {"stddev NaN", stddev(std::nan("")), "stddev", "nan", over_zero},
      {"stddev Inf", stddev(kInf), "stddev", "inf", over_zero},
      {"stddev -Inf", stddev(-kInf), "stddev", "-inf", over_zero},
      {"mean NaN", mean(std::nan("")), "mean", "nan", finite},
      {"mean Inf", mean(kInf), "mean", "inf", finite},
      {"mean -Inf", mean(-kInf), "mean", "-inf", finite},
      {"no input", [](auto* r) { r->clear_input(); }, "input.spec.dtype", "0", "*"},
      {"no spec", [](auto* r) { r->mutable_input()->clear_spec(); }, "input.spec.dtype", "0", "*"},
      {"unknown dtype", dtype(v1::DType(16)), "input.spec.dtype", "16", "a tilewire.v1.DType, 1 to 15"},
      {"zero extent", [](auto* r) { r->mutable_input()->mutable_spec()->set_shape(0, 0); },
       "input.spec.shape[0]", "0", "1 or more"},
      {"overflow", [](auto* r) { r->mutable_input()->mutable_spec()->set_shape(0, int64_t{1} << 60); },
       "input.spec.shape", "*", "*"},
      {"short data", [](auto* r) { r->mutable_input()->mutable_data()->pop_back(); }, "input.data",
       "79 bytes long", "80 bytes, as its dtype and shape say"},
      {"long data", [](auto* r) { r->mutable_input()->mutable_data()->push_back('x'); }, "input.data",
       "81 bytes long", "80 bytes, as its dtype and shape say"},
      {"no data", [](auto* r) { r->mutable_input()->clear_data(); }, "input.data", "0 bytes long", "*"},
  };
  for (const DTypeInfo& info : AllDTypes())
    if (info.dtype != DType::kF32 && info.dtype != DType::kF64)
      all.push_back({"wrong dtype", dtype(static_cast<v1::DType>(info.dtype)), "dtype",
                     std::string(info.name), "f32 or f64"});
  return all;
}

TEST(BadGaussian, UnaryNamesFieldValueAndWhatIsAllowed) {
  TestServer server;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  for (const Bad& bad : BadRequests()) {
    SCOPED_TRACE(std::string(bad.name) + " " + bad.value);
    v1::GaussianPdfRequest request = GaussianCall(v1::DTYPE_F32, {20}, Floats(20, 1));
    bad.change(&request);
    grpc::ClientContext context;
    v1::GaussianPdfResponse response;
    ExpectError(stub->GaussianPdf(&context, request, &response), kInvalid, "BAD_VALUE", bad.field, bad.value,
                bad.allowed);
  }
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u) << "nothing was allocated";
  ExpectUnharmed(server);
}

TEST(BadGaussian, StreamsAreRefusedAtOpen) {
  TestServer server;
  const auto channel = server.Connect();
  const v1::Open good = GaussianOpen(v1::DTYPE_F32, {20}, 0, 1);
  const std::vector<std::tuple<std::function<void(v1::Open*)>, std::string, std::string>> all{
      {[](auto* o) { o->clear_operands(); }, "open.operands", "0 specs"},
      {[](auto* o) { *o->add_operands() = o->operands(0); }, "open.operands", "2 specs"},
      {[](auto* o) { o->mutable_gaussian_pdf()->Clear(); }, "stddev", "0"},
      {[](auto* o) { o->mutable_gaussian_pdf()->set_stddev(-kInf); }, "stddev", "-inf"},
      {[](auto* o) { o->mutable_gaussian_pdf()->set_mean(std::nan("")); }, "mean", "nan"},
      {[](auto* o) { o->mutable_operands(0)->set_dtype(v1::DTYPE_BF16); }, "dtype", "bf16"},
      {[](auto* o) { o->mutable_operands(0)->set_dtype(v1::DTYPE_C64); }, "dtype", "c64"},
      {[](auto* o) { o->mutable_operands(0)->set_shape(0, -1); }, "operands[0].shape[0]", "-1"},
  };
  for (const auto& [change, field, value] : all) {
    SCOPED_TRACE(field + " " + value);
    v1::Open open = good;
    change(&open);
    RawStream raw(channel);
    EXPECT_FALSE(raw.Open(open));
    ExpectError(raw.End(), kInvalid, "BAD_VALUE", field, value);
  }
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ExpectUnharmed(server);
}

TEST(BadGaussian, LargeRepliesPointToExecute) {
  TestServer server;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  for (const int64_t elements : {(int64_t{1} << 20) - 1024, (int64_t{1} << 20) - 1023}) {
    const std::string data(static_cast<size_t>(elements) * 4, '\0');
    grpc::ClientContext context;
    v1::GaussianPdfResponse response;
    const auto status = stub->GaussianPdf(&context, GaussianCall(v1::DTYPE_F32, {elements}, data), &response);
    if (elements * 4 <= (4 << 20) - 4096) {
      EXPECT_TRUE(status.ok()) << status.error_message();
    } else {
      ExpectError(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "USE_EXECUTE", "result", "4190212",
                  "4190208");
    }
  }
  ExpectUnharmed(server);
}

TEST_P(Gaussian, OutputLeavesWhileInputStillArrives) {
  TestServer server(device(), {});
  // Seven ranges and a remainder of three elements.
  const int64_t range = RangeElements(), elements = 7 * range + 3;
  const std::string in = Floats(static_cast<size_t>(elements), 5);
  const std::string want = HostGaussian(in, DType::kF32, {elements}, 0.25, 0.5);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(GaussianOpen(v1::DTYPE_F32, {elements}, 0.25, 0.5)));
  const size_t three = static_cast<size_t>(range) * 3 * 4, half = three + static_cast<size_t>(range) * 2;
  ASSERT_TRUE(raw.SendAll(0, in, 1 << 20, 0, half));
  std::string got;
  v1::ExecuteResponse response;
  while (got.size() < three) {  // the rest of the input is still here
    ASSERT_TRUE(raw.stream->Read(&response));
    ASSERT_TRUE(response.has_chunk());
    EXPECT_EQ(response.chunk().offset(), got.size());
    got += response.chunk().data();
  }
  EXPECT_EQ(got.size(), three) << "no output before its input";
  EXPECT_TRUE(got == want.substr(0, got.size()));
  std::thread writer([&] {
    raw.SendAll(0, in, 1 << 20, half);
    raw.stream->WritesDone();
  });
  while (raw.stream->Read(&response)) {
    if (response.has_chunk()) {
      EXPECT_EQ(response.chunk().offset(), got.size());
      got += response.chunk().data();
    }
  }
  writer.join();
  const auto status = raw.stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(got == want);
  ExpectUnharmed(server);
}

TEST_P(Gaussian, AClientThatLeavesAfterEarlyOutputHarmsNothing) {
  TestServer server(device(), {});
  const int64_t elements = 4 * RangeElements();
  const std::string in = Floats(static_cast<size_t>(elements), 6);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(GaussianOpen(v1::DTYPE_F32, {elements}, 0, 1)));
  ASSERT_TRUE(raw.SendAll(0, in, 1 << 20, 0, in.size() / 2));
  v1::ExecuteResponse response;
  ASSERT_TRUE(raw.stream->Read(&response));
  EXPECT_TRUE(response.has_chunk());
  raw.output = response.chunk().data();  // more may be here already
  raw.context.TryCancel();
  EXPECT_FALSE(raw.Drain().ok());
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

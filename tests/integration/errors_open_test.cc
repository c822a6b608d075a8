// Requests that are wrong before any byte of an array is looked at: nothing may be allocated for them.
#include <limits>

#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct BadOpen {
  const char* name;
  v1::Open open;
  std::string field, value, allowed;
};

v1::Open With(v1::Open open, const std::function<void(v1::Open*)>& change) {
  change(&open);
  return open;
}

std::vector<BadOpen> BadOpens() {
  const v1::Open rmse = RmseOpen(v1::DTYPE_F32, {4, 5}), transpose = TransposeOpen(v1::DTYPE_F32, {4, 5});
  const std::string dtypes = "a tilewire.v1.DType, 1 to 15",
                    real = "a real dtype: i8 to u64, f16, bf16, f32, f64";
  return {
      {"no operation", With(rmse, [](auto* o) { o->clear_operation(); }), "open.operation", "not set",
       rpc::OperationNames("put")},
      {"no operands", With(rmse, [](auto* o) { o->clear_operands(); }), "open.operands", "0 specs", "2"},
      {"one operand", With(rmse, [](auto* o) { o->mutable_operands()->RemoveLast(); }), "open.operands",
       "1 specs", "2"},
      {"two operands", With(transpose, [](auto* o) { *o->add_operands() = o->operands(0); }), "open.operands",
       "2 specs", "1"},
      {"unset dtype", RmseOpen(v1::DTYPE_UNSPECIFIED, {4}), "operands[0].dtype", "0", dtypes},
      {"unknown dtype", With(rmse, [](auto* o) { o->mutable_operands(1)->set_dtype(v1::DType(77)); }),
       "operands[1].dtype", "77", dtypes},
      {"negative dtype", TransposeOpen(v1::DType(-1), {4}), "operands[0].dtype", "-1", dtypes},
      {"differing dtypes", With(rmse, [](auto* o) { o->mutable_operands(1)->set_dtype(v1::DTYPE_F64); }),
       "b.dtype", "f64", "f32, as operand a"},
      {"differing shapes", With(rmse, [](auto* o) { o->mutable_operands(1)->set_shape(0, 3); }), "b.shape",
       "(3, 5)", "(4, 5), as operand a"},
      {"differing ranks", With(rmse, [](auto* o) { o->mutable_operands(1)->add_shape(1); }), "b.shape",
       "(4, 5, 1)", "(4, 5), as operand a"},
      {"zero extent", RmseOpen(v1::DTYPE_F32, {4, 0}), "operands[0].shape[1]", "0", "1 or more"},
      {"negative extent", TransposeOpen(v1::DTYPE_F32, {-4, 5}), "operands[0].shape[0]", "-4", "1 or more"},
      {"most negative extent", TransposeOpen(v1::DTYPE_U8, {-kMax - 1}), "operands[0].shape[0]", "*",
       "1 or more"},
      {"overflowing product", TransposeOpen(v1::DTYPE_U8, {int64_t{1} << 32, int64_t{1} << 32}),
       "operands[0].shape", "a product over 2^60", "at most 2^60 elements"},
      {"overflowing bytes", TransposeOpen(v1::DTYPE_C128, {int64_t{1} << 57}), "operands[0].shape", "*",
       "at most 2^60 bytes"},
      {"largest extents", RmseOpen(v1::DTYPE_F64, {kMax, kMax}), "operands[0].shape", "*", "*"},
      {"rank 17", TransposeOpen(v1::DTYPE_U8, std::vector<int64_t>(17, 1)), "operands[0].shape rank", "17",
       "0 to 16"},
      {"axis too large", RmseOpen(v1::DTYPE_F32, {4, 5}, {2}), "axes", "2", "-2 to 1"},
      {"axis too small", RmseOpen(v1::DTYPE_F32, {4, 5}, {-3}), "axes", "-3", "-2 to 1"},
      {"axis of a scalar", RmseOpen(v1::DTYPE_F32, {}, {0}), "axes", "0", "none for a 0-d array"},
      {"repeated axis", RmseOpen(v1::DTYPE_F32, {4, 5}, {1, -1}), "axes", "-1 twice", "each axis once"},
      {"incomplete permutation", TransposeOpen(v1::DTYPE_F32, {4, 5}, {1}), "axes", "1 axes", "*"},
      {"repeated permutation", TransposeOpen(v1::DTYPE_F32, {4, 5}, {1, 1}), "axes", "1 twice",
       "each axis once"},
      {"bool RMSE", RmseOpen(v1::DTYPE_BOOL, {4}), "dtype", "bool", real},
      {"complex RMSE", RmseOpen(v1::DTYPE_C64, {4}), "dtype", "c64", real},
      {"unknown output", With(rmse, [](auto* o) { o->mutable_rmse()->set_output(v1::RmseOutput(9)); }),
       "output", "9", "a tilewire.v1.RmseOutput, 0 to 2"},
      {"negative output", With(rmse, [](auto* o) { o->mutable_rmse()->set_output(v1::RmseOutput(-1)); }),
       "output", "-1", "a tilewire.v1.RmseOutput, 0 to 2"},
      {"small output chunks", With(rmse, [](auto* o) { o->mutable_options()->set_output_chunk_bytes(1); }),
       "options.output_chunk_bytes", "1", "4096 to 4194304"},
      {"large output chunks",
       With(rmse, [](auto* o) { o->mutable_options()->set_output_chunk_bytes(~0ull); }),
       "options.output_chunk_bytes", "18446744073709551615", "4096 to 4194304"},
      {"small blocks", With(rmse, [](auto* o) { o->mutable_options()->set_block_bytes(1); }),
       "options.block_bytes", "1", "4096 to 268435456, a multiple of 4096"},
      {"odd blocks", With(rmse, [](auto* o) { o->mutable_options()->set_block_bytes(5000); }),
       "options.block_bytes", "5000", "4096 to 268435456, a multiple of 4096"},
      {"large blocks", With(rmse, [](auto* o) { o->mutable_options()->set_block_bytes(1ull << 40); }),
       "options.block_bytes", "1099511627776", "4096 to 268435456, a multiple of 4096"},
  };
}

TEST(BadOpen, NamesFieldValueAndWhatIsAllowed) {
  TestServer server;
  const auto channel = server.Connect();
  for (const BadOpen& bad : BadOpens()) {
    SCOPED_TRACE(bad.name);
    RawStream raw(channel);
    EXPECT_FALSE(raw.Open(bad.open));
    ExpectError(raw.End(), kInvalid, "BAD_VALUE", bad.field, bad.value, bad.allowed);
  }
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u) << "nothing was allocated";
  ExpectUnharmed(server);
}

struct BadUnary {
  const char* name;
  std::function<void(v1::RmseRequest*)> change;
  std::string field, value, allowed;
};

TEST(BadUnary, NamesFieldValueAndWhatIsAllowed) {
  TestServer server;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  const v1::RmseRequest good = RmseCall({4, 5}, Floats(20, 1), Floats(20, 2));
  const std::vector<BadUnary> all{
      {"no operands", [](auto* r) { r->clear_a(); }, "a.spec.dtype", "0", "*"},
      {"no spec", [](auto* r) { r->mutable_b()->clear_spec(); }, "b.spec.dtype", "0", "*"},
      {"unknown dtype", [](auto* r) { r->mutable_a()->mutable_spec()->set_dtype(v1::DType(16)); },
       "a.spec.dtype", "16", "a tilewire.v1.DType, 1 to 15"},
      {"differing dtypes", [](auto* r) { r->mutable_b()->mutable_spec()->set_dtype(v1::DTYPE_I32); },
       "b.dtype", "i32", "f32, as operand a"},
      {"differing shapes", [](auto* r) { r->mutable_b()->mutable_spec()->set_shape(1, 6); }, "b.shape",
       "(4, 6)", "(4, 5), as operand a"},
      {"zero extent", [](auto* r) { r->mutable_b()->mutable_spec()->set_shape(1, 0); }, "b.spec.shape[1]",
       "0", "1 or more"},
      {"rank 17",
       [](auto* r) {
         for (int i = 0; i < 15; ++i) r->mutable_a()->mutable_spec()->add_shape(1);
       },
       "a.spec.shape rank", "17", "0 to 16"},
      {"bad axis", [](auto* r) { r->mutable_op()->add_axes(7); }, "axes", "7", "-2 to 1"},
      {"short data", [](auto* r) { r->mutable_a()->mutable_data()->pop_back(); }, "a.data", "79 bytes long",
       "80 bytes, as its dtype and shape say"},
      {"long data", [](auto* r) { r->mutable_b()->mutable_data()->push_back('x'); }, "b.data",
       "81 bytes long", "80 bytes, as its dtype and shape say"},
      {"no data", [](auto* r) { r->mutable_b()->clear_data(); }, "b.data", "0 bytes long",
       "80 bytes, as its dtype and shape say"},
  };
  for (const BadUnary& bad : all) {
    SCOPED_TRACE(bad.name);
    v1::RmseRequest request = good;
    bad.change(&request);
    grpc::ClientContext context;
    v1::RmseResponse response;
    ExpectError(stub->Rmse(&context, request, &response), kInvalid, "BAD_VALUE", bad.field, bad.value,
                bad.allowed);
  }
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ExpectUnharmed(server);
}

TEST(BadUnary, BytesThatAreNoMessage) {
  TestServer server;
  const auto channel = server.Connect();
  const std::string good = RmseCall({4}, Floats(4, 1), Floats(4, 2)).SerializeAsString();
  const std::string data_twice = "\x7a\x01x\x7a\x01y";
  for (const std::string& bytes : {std::string(), std::string(1, '\xff'), std::string(100, '\x08'),
                                   Bytes(1000, 3), good.substr(0, good.size() - 1), good + good,
                                   "\x7a" + std::string(1, static_cast<char>(data_twice.size())) + data_twice,
                                   std::string("\x0b\x0c")}) {
    for (const char* method : {"/tilewire.v1.Kernels/Rmse", "/tilewire.v1.Kernels/Transpose",
                               "/tilewire.v1.Kernels/GaussianPdf"}) {
      SCOPED_TRACE(method + std::string(", ") + std::to_string(bytes.size()) + " bytes");
      const auto reply = ByteCall(channel, method).Unary(bytes);
      EXPECT_EQ(reply.status.error_code(), kInvalid) << reply.status.error_message();
      const std::string reason = ErrorInfoOf(reply.status).reason();
      EXPECT_TRUE(reason == "BAD_MESSAGE" || reason == "BAD_VALUE") << reason;
    }
  }
  for (const char* method : {"/tilewire.v1.Kernels/Transpose", "/tilewire.v1.Kernels/GaussianPdf"})
    ExpectError(ByteCall(channel, method)
                    .Unary("\x7a" + std::string(1, static_cast<char>(data_twice.size())) + data_twice)
                    .status,
                kInvalid, "BAD_MESSAGE");
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

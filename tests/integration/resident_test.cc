// Resident arrays through the client library: the same bits by every way, and no bytes where none are needed.
#include <cstring>

#include "client/cpp/client.h"
#include "tests/integration/arrays.h"
#include "tests/integration/join.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

using client::ArraySource;
using client::CallForm;
using client::CallOptions;
using client::OwnedArray;

ArraySource Memory(const std::string& bytes, const std::vector<int64_t>& shape) {
  return ArraySource::FromMemory(MakeSpec(DType::kF32, shape).value(), bytes.data());
}

class Resident : public OnBoth {
 protected:
  static TestServer::Options Options() {
    TestServer::Options options = ArrayOptions();
    options.engine.max_streams = 4;
    return options;
  }
  OwnedArray Put(const ArraySource& source, const CallOptions& options = {}) {
    auto put = client_.Put(source, {}, options);
    EXPECT_TRUE(put) << put.error().ToString();
    return put ? std::move(put->array) : OwnedArray();
  }
  std::string Fetched(const std::string& id, const CallOptions& options = {}) {
    return Collected([&](const client::Sink& sink) { return client_.Get(id, sink, options); });
  }

  TestServer server_{device(), Options()};
  client::Client client_ = client::Client::Connect(server_.address(), {.metadata = {{"who", "me"}}});
};
TILEWIRE_ON_BOTH(Resident);

/// Call forms and connections: a name, and the options.
std::vector<std::pair<std::string, CallOptions>> Ways(bool unary) {
  std::vector<std::pair<std::string, CallOptions>> ways(unary ? 4 : 3);
  ways[0].first = "one stream";
  ways[0].second.form = CallForm::kStream;
  ways[0].second.connections = 1;
  ways[1].first = "striped";
  ways[1].second.form = CallForm::kStream;
  ways[1].second.connections = 4;
  ways[1].second.message_bytes = 20'000;
  ways[2].first = "as it likes";
  if (!unary) return ways;
  ways[3].first = "one message";
  ways[3].second.form = CallForm::kUnary;
  return ways;
}

TEST_P(Resident, TheSameBitsByEveryWay) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{30, 40}, {300, 2001}}) {
    const auto count = static_cast<size_t>(shape[0] * shape[1]);
    const std::string a = Floats(count, 1), b = Floats(count, 2);
    const client::Operation operations[] = {client::RmseOp{{1}}, client::TransposeOp{},
                                            client::GaussianOp{0.25, 0.5}};
    const std::string expected[] = {HostRmse(a, b, DType::kF32, shape, {1}),
                                    HostTranspose(a, DType::kF32, shape),
                                    HostGaussian(a, DType::kF32, shape, 0.25, 0.5)};
    for (const auto& [name, way] : Ways(count < 2000)) {
      SCOPED_TRACE(name);
      const OwnedArray kept_a = Put(Memory(a, shape), way), kept_b = Put(Memory(b, shape), way);
      EXPECT_TRUE(Fetched(kept_a.id(), way) == a);
      const ArraySource sources_a[] = {Memory(a, shape), kept_a.source(), ArraySource::Resident(kept_a.id())},
                        sources_b[] = {Memory(b, shape), ArraySource::Resident(kept_b.id())};
      for (size_t i = 0; i < 3; ++i)
        for (const ArraySource& x : sources_a)
          for (const ArraySource& y : sources_b) {
            if (i > 0 && &y != sources_b) continue;  // one operand
            const std::vector<ArraySource> operands = i == 0 ? std::vector{x, y} : std::vector{x};
            EXPECT_TRUE(Collected([&](const client::Sink& sink) {
                          return client_.Execute(operations[i], operands, sink, way);
                        }) == expected[i]);
            const auto stored = client_.Store(operations[i], operands, {}, way);
            ASSERT_TRUE(stored) << stored.error().ToString();
            EXPECT_EQ(stored->reply.timing.bytes_out, 0u);
            EXPECT_TRUE(Fetched(stored->array.id(), way) == expected[i]);
          }
    }
  }
  EXPECT_TRUE(client_.List().value().arrays.empty());
  ExpectUnharmed(server_);
}

TEST_P(Resident, SeveralConnectionsBringAndStore) {
  const std::string bytes = Floats(5'000'000, 1);
  uint32_t put_streams = 0, get_streams = 0;
  CallOptions options;
  options.connections = 4;
  // Not always: the first may be through before others have joined.
  for (int i = 0; i < 10 && (put_streams < 2 || get_streams < 2); ++i) {
    const auto put = client_.Put(Memory(bytes, {5'000'000}), {}, options);
    ASSERT_TRUE(put) << put.error().ToString();
    put_streams = std::max(put_streams, put->reply.timing.streams);
    std::string out(bytes.size(), '\0');
    const auto got = client_.Get(
        put->array.source(),
        [&out](uint64_t offset, std::span<const uint8_t> piece) {
          std::memcpy(out.data() + offset, piece.data(), piece.size());
          return Status();
        },
        options);
    ASSERT_TRUE(got) << got.error().ToString();
    get_streams = std::max(get_streams, got->timing.streams);
    EXPECT_TRUE(out == bytes);
  }
  EXPECT_GT(put_streams, 1u);
  EXPECT_GT(get_streams, 1u);
  ExpectUnharmed(server_);
}

TEST_P(Resident, AKeyStoresOnceHoweverLargeTheArray) {
  const std::string bytes = Floats(5'000'000, 1);
  const client::StoreOptions key{.idempotency_key = "k"};
  for (const uint32_t connections : {1u, 4u}) {
    CallOptions options;
    options.connections = connections;
    auto first = client_.Put(Memory(bytes, {5'000'000}), key, options);
    ASSERT_TRUE(first) << first.error().ToString();
    auto again = client_.Put(Memory(bytes, {5'000'000}), key, options);
    ASSERT_TRUE(again) << again.error().ToString();
    EXPECT_EQ(again->array.Release(), first->array.id());
    EXPECT_EQ(server_.engine().stats().arrays_stored, 1u);
    // The key of another array, while chunks are on their way.
    const auto other = client_.Put(Memory(bytes, {2'500'000, 2}), key, options);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().detail()->field, "options.store.idempotency_key");
  }
  ExpectUnharmed(server_);
}

TEST_P(Resident, HandlesEndWithTheirScopeAlsoInUse) {
  const std::string bytes = Floats(2'000'000, 1), other = Floats(2'000'000, 2);
  std::optional<OwnedArray> array = Put(Memory(bytes, {2000, 1000}));
  const std::string id = array->id();
  bool first = true;
  std::string out;
  const auto reply = client_.Get(array->source(), [&](uint64_t offset, std::span<const uint8_t> piece) {
    if (std::exchange(first, false)) array.reset();  // in the middle of it
    out.resize(std::max<size_t>(out.size(), offset + piece.size()));
    std::memcpy(out.data() + offset, piece.data(), piece.size());
    return Status();
  });
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(out == bytes);
  const auto gone = client_.Stat(id);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().reason(), "ARRAY");
  const auto use = client_.Rmse(Memory(other, {2000, 1000}), ArraySource::Resident(id));
  ASSERT_FALSE(use);
  EXPECT_EQ(use.error().code(), Code::kNotFound);
  EXPECT_EQ(use.error().detail()->value, id);
  ExpectUnharmed(server_);
}

TEST_P(Resident, OthersSeeNothing) {
  client::Client other = client::Client::Connect(server_.address(), {.metadata = {{"who", "other"}}});
  const std::string bytes = Floats(1000, 1);
  const OwnedArray mine = Put(Memory(bytes, {1000}));
  EXPECT_TRUE(other.List().value().arrays.empty());
  EXPECT_EQ(client_.List().value().arrays.size(), 1u);
  const ArraySource stolen = ArraySource::Resident(mine.id());
  EXPECT_EQ(other.Rmse(Memory(bytes, {1000}), stolen).error().reason(), "ARRAY");
  EXPECT_EQ(other.Delete(mine.id()).reason(), "ARRAY");
  EXPECT_EQ(client_.Rmse(Memory(bytes, {1000}), stolen).value().values, std::vector<double>{0});
}

TEST(ResidentChain, MovesNoArrayBytes) {
  Program server({"--device", "cpu", "--listen", "localhost:0", "--metrics-listen", "localhost:0",
                  "--device-bytes", "256MiB"});
  const std::string address = server.Ready().at(0), metrics = server.MetricsAddress();
  client::Client client = client::Client::Connect(address);
  const std::vector<int64_t> shape{300, 1000}, turned{1000, 300};
  const std::string a = Floats(300'000, 1), b = Floats(300'000, 2);
  const auto put = client.Put(Memory(a, shape));
  ASSERT_TRUE(put) << put.error().ToString();
  EXPECT_EQ(put->reply.timing.bytes_in, a.size());
  const auto reference = client.Put(Memory(b, turned));
  ASSERT_TRUE(reference) << reference.error().ToString();
  const auto count = [&](const std::string& metric) { return SumOfMetric(metrics, metric); };
  // The metrics of a call may be counted a moment after its reply.
  ASSERT_TRUE(Eventually([&] {
    return count("tilewire_received_bytes_total") == double(a.size() + b.size());
  })) << count("tilewire_received_bytes_total");
  const double sent = count("tilewire_sent_bytes_total");

  const ArraySource operands[] = {put->array.source()};
  const auto transposed = client.Store(client::TransposeOp{}, operands);
  ASSERT_TRUE(transposed) << transposed.error().ToString();
  const auto rmse = client.Rmse(transposed->array.source(), reference->array.source());
  ASSERT_TRUE(rmse) << rmse.error().ToString();
  double expected = 0;
  std::memcpy(&expected, HostRmse(HostTranspose(a, DType::kF32, shape), b, DType::kF32, turned).data(), 8);
  EXPECT_EQ(rmse->values, std::vector<double>{expected});
  EXPECT_FALSE(rmse->reply.streamed);
  for (const auto* timing : {&transposed->reply.timing, &rmse->reply.timing}) EXPECT_EQ(timing->bytes_in, 0u);
  EXPECT_EQ(transposed->reply.timing.bytes_out, 0u);
  EXPECT_EQ(rmse->reply.timing.bytes_out, 8u);
  EXPECT_TRUE(Eventually([&] { return count("tilewire_sent_bytes_total") - sent == 8; }))
      << "the value alone: " << count("tilewire_sent_bytes_total") - sent;
  EXPECT_EQ(count("tilewire_received_bytes_total"), double(a.size() + b.size()));
}

}  // namespace
}  // namespace tilewire::testing

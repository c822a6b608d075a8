// Random callers of the client library beside a model: what must exist, who owns it, how many bytes it takes.
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "client/cpp/client.h"
#include "tests/integration/arrays.h"

namespace tilewire::testing {
namespace {

using client::ArraySource;
using client::OwnedArray;

/// What one caller's array should be.
struct Mine {
  OwnedArray array;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// Does at random what callers do, and checks each answer against what it knows itself.
class Wanderer {
 public:
  Wanderer(const TestServer& server, uint64_t seed)
      : client_(client::Client::Connect(server.address(),
                                        {.metadata = {{"who", "caller" + std::to_string(seed)}}})),
        random_(seed) {}
  /// `foreign`: somebody else's id, or none.
  void Sequence(const std::string& foreign) {
    for (int step = 0; step < 6; ++step) Step(foreign);
    Compare();
  }
  /// One of its ids, or none.
  std::string Any() {
    if (arrays_.empty()) return "";
    return std::next(arrays_.begin(), static_cast<int64_t>(random_() % arrays_.size()))->first;
  }
  void DropAll() {
    arrays_.clear();  // the handles do it, as far as two seconds each go
    if (const auto left = client_.List())
      for (const auto& info : left->arrays) (void)client_.Delete(info.id);
    Compare();
  }

 private:
  void Step(const std::string& foreign) {
    const std::string id = Any();
    const uint64_t what = random_() % 8;
    if (what < 2) return Put();
    if (what == 2 && !foreign.empty()) return Trespass(foreign);
    if (id.empty()) return;
    const Mine& mine = arrays_.at(id);
    switch (what) {
      case 3:
        return Get(mine);
      case 4:
        return Delete(id);
      case 5:
        return Transpose(mine);
      default:
        return Compute(mine);
    }
  }
  client::CallOptions AnyForm() {
    client::CallOptions options;
    options.form = static_cast<client::CallForm>(random_() % 3);
    options.connections = 1 + static_cast<uint32_t>(random_() % 2);
    return options;
  }
  ArraySource Source(const Mine& mine) {
    return random_() % 2 ? mine.array.source() : ArraySource::Resident(mine.array.id());
  }
  void Put() {
    const std::vector<int64_t> shape{static_cast<int64_t>(1 + random_() % 40),
                                     static_cast<int64_t>(1 + random_() % 900)};
    const std::string bytes = Floats(static_cast<size_t>(shape[0] * shape[1]), random_());
    Keep(client_.Put(ArraySource::FromMemory(MakeSpec(DType::kF32, shape).value(), bytes.data()),
                     {.seconds = 600}, AnyForm()),
         shape, bytes);
  }
  void Trespass(const std::string& foreign) {
    EXPECT_EQ(client_.Delete(foreign).code(), Code::kNotFound);
    EXPECT_EQ(client_.Transpose(ArraySource::Resident(foreign), {}, client::Sink()).error().code(),
              Code::kNotFound);
  }
  void Get(const Mine& mine) {
    std::string bytes(mine.bytes.size(), '\0');
    const auto reply =
        client_.Get(mine.array.id(), [&bytes](uint64_t offset, std::span<const uint8_t> piece) {
          std::memcpy(bytes.data() + offset, piece.data(), piece.size());
          return Status();
        });
    EXPECT_TRUE(reply) << reply.error().ToString();
    EXPECT_TRUE(bytes == mine.bytes);
  }
  void Delete(const std::string& id) {
    if (const Status status = arrays_.at(id).array.Delete(); !status.ok()) {  // it tries for two seconds only
      EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.ToString();
      (void)client_.Delete(id);
    }
    arrays_.erase(id);
    EXPECT_EQ(client_.Stat(id).error().reason(), "ARRAY");
  }
  void Transpose(const Mine& mine) {
    const ArraySource operands[] = {Source(mine)};
    Keep(client_.Store(client::TransposeOp{}, operands, {}, AnyForm()), {mine.shape[1], mine.shape[0]},
         HostTranspose(mine.bytes, DType::kF32, mine.shape));
  }
  void Compute(const Mine& mine) {
    const std::string sent = Floats(mine.bytes.size() / 4, random_());
    const auto reply =
        client_.Rmse(ArraySource::FromMemory(mine.array.spec(), sent.data()), Source(mine), {}, AnyForm());
    ASSERT_TRUE(reply) << reply.error().ToString();
    const std::string expected = HostRmse(sent, mine.bytes, DType::kF32, mine.shape);
    EXPECT_EQ(std::memcmp(reply->values.data(), expected.data(), 8), 0);
  }
  void Keep(Result<client::StoredReply> stored, const std::vector<int64_t>& shape, const std::string& bytes) {
    ASSERT_TRUE(stored) << stored.error().ToString();
    EXPECT_EQ(stored->array.spec(), MakeSpec(DType::kF32, shape).value());
    const std::string id = stored->array.id();
    arrays_[id] = {std::move(stored->array), shape, bytes};
  }
  void Compare() {
    const auto list = client_.List();
    ASSERT_TRUE(list) << list.error().ToString();
    std::set<std::string> listed, known;
    uint64_t held = 0;
    for (const auto& info : list->arrays) {
      listed.insert(info.id);
      held += info.device_bytes;
      ASSERT_TRUE(arrays_.contains(info.id));
      EXPECT_EQ(info.spec, arrays_.at(info.id).array.spec());
      EXPECT_GE(info.device_bytes, arrays_.at(info.id).bytes.size());
    }
    for (const auto& [id, mine] : arrays_) known.insert(id);
    EXPECT_EQ(listed, known);
    EXPECT_GE(list->stored_bytes, held) << "one that was deleted may be on its way out";
    EXPECT_TRUE(Eventually([&] {
      const auto now = client_.List();
      return now && now->stored_bytes == held;
    }));
  }

  client::Client client_;
  std::mt19937_64 random_;
  std::map<std::string, Mine> arrays_;
};

TEST(ArraySequences, AgreeWithAModel) {
  TestServer server(ArrayOptions());
  constexpr int kCallers = 16, kSequences = 1000 / kCallers + 1;
  std::mutex mutex;
  std::string foreign;  // somebody's id
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= kCallers; ++seed)
    threads.emplace_back([&, seed] {
      Wanderer wanderer(server, seed);
      for (int i = 0; i < kSequences; ++i) {
        std::string somebodys;
        if (seed % 2 == 0) {
          std::lock_guard lock(mutex);
          somebodys = foreign;
        }
        wanderer.Sequence(somebodys);
        if (seed % 2 == 1) {  // those with odd numbers are never asked for their own
          std::lock_guard lock(mutex);
          foreign = wanderer.Any();
        }
      }
      wanderer.DropAll();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(server.engine().stats().arrays_stored, 0u);
  EXPECT_TRUE(Eventually([&] { return server.engine().stats().array_bytes == 0; }));
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

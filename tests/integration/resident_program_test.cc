// The programs and resident arrays, as operators and users meet them.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cpp/client.h"
#include "client/cpp/npy.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

using client::ArraySource;
using nlohmann::json;

struct Ran {
  int exit_code;
  std::string out, err;
  /// The one line of stdout.
  std::string line() const { return out.substr(0, out.find('\n')); }
};

class ResidentProgram : public ::testing::Test {
 protected:
  ResidentProgram() {
    std::filesystem::create_directories(directory_);
    WriteNpy("a.npy", kShape, a_);
    WriteNpy("b.npy", kTurned, b_);
  }
  ~ResidentProgram() override {
    std::filesystem::remove_all(directory_);
    EXPECT_TRUE(server_.running());
  }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  void WriteNpy(const std::string& name, const std::vector<int64_t>& shape, const std::string& bytes) const {
    std::ofstream(File(name), std::ios::binary)
        << client::FormatNpyHeader(MakeSpec(DType::kF32, shape).value()) << bytes;
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(File(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Ran Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--server", address_});
    Program program(TILEWIRE_TILEWIRE, std::move(arguments));
    const int exit_code = program.Wait(120);
    return {exit_code, program.out(), program.err()};
  }
  std::string Id(const std::vector<std::string>& arguments) const {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.line();
  }
  /// Exit code 1, nothing on stdout, and an error that begins so and names all of `words`.
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& status,
                     const std::vector<std::string>& words) const {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 1) << ::testing::PrintToString(arguments);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("error: " + status + ": ")) << ran.err;
    for (const auto& word : words)
      EXPECT_NE(ran.err.find(word), std::string::npos) << word << "\n" << ran.err;
  }
  double Metric(const std::string& begin) const { return SumOfMetric(metrics_, begin); }

  static inline const std::vector<int64_t> kShape{300, 500}, kTurned{500, 300};
  const std::string a_ = Floats(150'000, 1), b_ = Floats(150'000, 2);
  const std::string directory_ = ::testing::TempDir() + "tilewire-resident-" + std::to_string(getpid());
  Program server_{{"--device", "cpu", "--listen", "localhost:0", "--metrics-listen", "localhost:0",
                   "--device-bytes", "256MiB", "--store-bytes-per-identity", "4MiB"}};
  const std::string address_ = server_.Ready().at(0), metrics_ = server_.MetricsAddress();
};

TEST_F(ResidentProgram, AChainOfCommandsMovesNoArrayBytes) {
  const std::string a = "array:" + Id({"put", File("a.npy")}), b = "array:" + Id({"put", File("b.npy")});
  const double both = static_cast<double>(a_.size() + b_.size());
  ASSERT_TRUE(Eventually([&] { return Metric("tilewire_received_bytes_total") == both; }));
  const double sent = Metric("tilewire_sent_bytes_total");
  const Ran stored = Run({"transpose", a, "--store", "--json"});
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  const json told = json::parse(stored.out);
  EXPECT_EQ(told["shape"], json(kTurned));
  EXPECT_EQ(told["timing"]["bytes_in"], 0);
  EXPECT_EQ(told["timing"]["bytes_out"], 0);
  const std::string turned = told["array"];
  const Ran rmse = Run({"rmse", "array:" + turned, b, "--json"});
  ASSERT_EQ(rmse.exit_code, 0) << rmse.err;
  double expected = 0;
  const std::string host = HostTranspose(a_, DType::kF32, kShape);
  std::memcpy(&expected, HostRmse(host, b_, DType::kF32, kTurned).data(), sizeof expected);
  EXPECT_EQ(json::parse(rmse.out)["values"][0].get<double>(), expected);
  EXPECT_EQ(json::parse(rmse.out)["timing"]["bytes_in"], 0);
  EXPECT_TRUE(Eventually([&] { return Metric("tilewire_sent_bytes_total") - sent == 8; }))
      << "the value alone";
  EXPECT_EQ(Metric("tilewire_received_bytes_total"), both);

  // The same by files, and what was stored comes back as it is.
  ASSERT_EQ(Run({"transpose", File("a.npy"), File("t.npy")}).exit_code, 0);
  EXPECT_EQ(Run({"rmse", File("t.npy"), b}).out, Run({"rmse", "array:" + turned, File("b.npy")}).out);
  ASSERT_EQ(Run({"get", turned, File("t2.npy"), "--connections", "3"}).exit_code, 0);
  EXPECT_TRUE(Content("t2.npy") == Content("t.npy"));
  EXPECT_EQ(json::parse(Run({"ls", "--json"}).out)["arrays"].size(), 3u);
  EXPECT_EQ(Run({"rm", a, b, turned}).exit_code, 0);
  EXPECT_EQ(json::parse(Run({"info", "--json"}).out)["budgets"]["arrays_stored"], 0);
}

TEST_F(ResidentProgram, UnknownAndExpiredIdsAreNotFound) {
  const std::string mine = Id({"put", File("a.npy")});
  const std::string never = mine.substr(0, mine.size() - 1) + (mine.back() == '0' ? '1' : '0');
  const std::string expired = Id({"put", File("a.npy"), "--seconds", "0.001"});
  ASSERT_TRUE(Eventually([&] {
    return Run({"ls"}).out.starts_with("ID") && Run({"rm", expired}).exit_code == 1;
  }));
  for (const std::string& id : {never, expired, std::string("0123-4567")}) {
    ExpectRefused({"rmse", File("a.npy"), "array:" + id}, "NOT_FOUND", {id});
    ExpectRefused({"transpose", "array:" + id, "--store"}, "NOT_FOUND", {id});
    ExpectRefused({"transpose", "array:" + id, File("o.npy")}, "NOT_FOUND", {id});
    ExpectRefused({"get", id, File("o.npy")}, "NOT_FOUND", {id});
    ExpectRefused({"rm", id}, "NOT_FOUND", {id});
  }
  EXPECT_FALSE(std::filesystem::exists(File("o.npy")));
  EXPECT_EQ(Run({"rm", mine}).exit_code, 0) << "it is as it was";
}

TEST_F(ResidentProgram, QuotasRefuseOrEvict) {
  WriteNpy("large.npy", {1'200'000}, Floats(1'200'000, 3));
  WriteNpy("half.npy", {600'000}, Floats(600'000, 4));
  ExpectRefused({"put", File("large.npy")}, "RESOURCE_EXHAUSTED", {"4194304"});
  const std::string first = Id({"put", File("half.npy"), "--evictable"});
  // Room is made by what may go, and by nothing else.
  const std::string second = Id({"put", File("half.npy")});
  ExpectRefused({"rm", first}, "NOT_FOUND", {first});
  ExpectRefused({"put", File("half.npy"), "--timeout", "8"}, "RESOURCE_EXHAUSTED", {});
  ExpectRefused({"transpose", "array:" + second, "--store", "--timeout", "8"}, "RESOURCE_EXHAUSTED", {});
  EXPECT_EQ(Run({"rm", second}).exit_code, 0);
  EXPECT_EQ(Run({"rm", Id({"put", File("half.npy")})}).exit_code, 0);
}

TEST_F(ResidentProgram, DeletedInUseMeansGoneForTheNext) {
  const std::string id = Id({"put", File("a.npy")});
  client::Client client = client::Client::Connect(address_);
  std::string bytes(a_.size(), '\0');
  bool first = true;
  const auto reply = client.Get(id, [&](uint64_t offset, std::span<const uint8_t> piece) {
    if (std::exchange(first, false)) {
      EXPECT_EQ(Run({"rm", id}).exit_code, 0);
      ExpectRefused({"get", id, File("o.npy")}, "NOT_FOUND", {id});
    }
    std::memcpy(bytes.data() + offset, piece.data(), piece.size());
    return Status();
  });
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(bytes == a_);
  EXPECT_TRUE(Eventually([&] {
    return json::parse(Run({"info", "--json"}).out)["budgets"]["array_bytes"] == 0;
  }));
}

/// The command line names nobody, so here callers are clients of the library, behind a header as a proxy sets
/// it.
TEST(ResidentIdentities, OwnTheirArraysAndTheirQuota) {
  Program server({"--device", "cpu", "--listen", "127.0.0.1:0", "--device-bytes", "256MiB",
                  "--store-bytes-per-identity", "4MiB", "--identity-header", "who"});
  const std::string address = server.Ready().at(0), data = Floats(600'000, 4);
  const auto named = [&](const std::string& who) {
    return client::Client::Connect(address, {.metadata = {{"who", who}}});
  };
  const std::vector<int64_t> shape{600'000};
  const ArraySource half = ArraySource::FromMemory(MakeSpec(DType::kF32, shape).value(), data.data());
  client::Client mine = named("me"), other = named("other");
  const client::CallOptions once{.max_attempts = 1};
  const auto theirs = other.Put(half, {}, once);
  ASSERT_TRUE(theirs) << theirs.error().ToString();
  const std::string id = theirs->array.id();
  const ArraySource foreign = ArraySource::Resident(id, half.spec());
  const auto nowhere = [](uint64_t, std::span<const uint8_t>) { return Status(); };
  EXPECT_EQ(mine.Rmse(half, foreign, {}, once).error().reason(), "ARRAY");
  EXPECT_EQ(mine.Get(id, nowhere, once).error().reason(), "ARRAY");
  EXPECT_EQ(mine.Stat(id, once).error().code(), Code::kNotFound);
  EXPECT_EQ(mine.Delete(id).code(), Code::kNotFound);
  EXPECT_TRUE(mine.List().value().arrays.empty());
  EXPECT_EQ(other.Put(half, {}, once).error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(mine.Put(half, {}, once)) << "that was of one caller";
  EXPECT_TRUE(other.Stat(id)) << "it is as it was";
  EXPECT_EQ(client::Client::Connect(address).Describe().error().code(), Code::kUnauthenticated);
}

}  // namespace
}  // namespace tilewire::testing

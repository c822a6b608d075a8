// However the bytes of a job travel, its answer has the same bits: 1 to 16 connections, blocks in any order
// on any stream, operands interleaved at random, messages of 1 KiB to 4 MiB. The seed is printed;
// TILEWIRE_SEED repeats a run.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/integration/join.h"

namespace tilewire::testing {
namespace {

/// A run: whole blocks of an operand, ascending, all on one stream.
struct Run {
  uint32_t operand;
  uint64_t begin, end;
};

/// Cuts the operands into runs of 1 to 12 blocks and deals them out at random; a stream may get none.
std::vector<std::vector<Run>> Deal(uint64_t bytes, uint32_t operands, size_t streams,
                                   std::mt19937_64& random) {
  std::vector<std::vector<Run>> dealt(streams);
  for (uint32_t operand = 0; operand < operands; ++operand)
    for (uint64_t begin = 0; begin < bytes;) {
      const uint64_t end = std::min(bytes, begin + (1 + random() % 12) * kBlock);
      dealt[random() % streams].push_back({operand, begin, end});
      begin = end;
    }
  for (auto& runs : dealt) std::shuffle(runs.begin(), runs.end(), random);
  return dealt;
}

/// 1 KiB to 4 MiB; every magnitude is as likely.
uint64_t MessageBytes(std::mt19937_64& random) {
  return static_cast<uint64_t>(std::exp2(std::uniform_real_distribution<double>(10, 22)(random)));
}

/// Sends runs in messages of random sizes. Operands take turns at random, each with one open run.
void SendRuns(RawStream& raw, const std::vector<Run>& runs, const std::vector<std::string>& operands,
              uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<Run>> left(operands.size());
  for (const Run& run : runs) left[run.operand].push_back(run);
  const uint64_t usual =
      MessageBytes(random);  // some streams send small messages throughout, others large ones
  for (;;) {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < left.size(); ++i)
      if (!left[i].empty()) open.push_back(i);
    if (open.empty()) return;
    const uint32_t operand = open[random() % open.size()];
    Run& run = left[operand].back();
    const uint64_t size = std::min(run.end - run.begin, random() % 4 == 0 ? MessageBytes(random) : usual);
    ASSERT_TRUE(raw.Send(operand, run.begin, std::string_view(operands[operand]).substr(run.begin, size)));
    run.begin += size;
    if (run.begin == run.end) left[operand].pop_back();
  }
}

struct Case {
  const char* name;
  v1::Open open;
  std::vector<std::string> operands;
  std::string host;  ///< the answer by the host's kernels in one piece
};

// 6,144,000 bytes, 93 blocks of 64 KiB and a short one: room for messages of 4 MiB.
const std::vector<int64_t> kBox{12, 250, 512};
constexpr int64_t kStripedElements = 12 * 250 * 512;

std::vector<Case> Cases(uint64_t seed) {
  const std::string a = Floats(kStripedElements, seed), b = Floats(kStripedElements, seed + 1);
  const auto rmse = [&](const char* name, const std::vector<int>& axes) {
    return Case{name, RmseOpen(v1::DTYPE_F32, kBox, axes), {a, b}, HostRmse(a, b, DType::kF32, kBox, axes)};
  };
  const auto transpose = [&](const char* name, const std::vector<int>& axes) {
    return Case{
        name, TransposeOpen(v1::DTYPE_F32, kBox, axes), {a}, HostTranspose(a, DType::kF32, kBox, axes)};
  };
  return {rmse("rmse", {}),
          rmse("rmse, batched", {1, 2}),
          rmse("rmse, columns", {0, 1}),
          rmse("rmse, many segments", {2}),
          transpose("transpose, leading axis kept", {0, 2, 1}),
          transpose("transpose, axes reversed", {}),
          {"gaussian pdf",
           GaussianOpen(v1::DTYPE_F32, kBox, 0.5, 0.2),
           {a},
           HostGaussian(a, DType::kF32, kBox, 0.5, 0.2)}};
}

uint64_t Seed() {
  const char* given = std::getenv("TILEWIRE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

class StripeBits : public OnBoth {};

TEST_P(StripeBits, DoNotDependOnHowTheBytesTravel) {
  const uint64_t seed = Seed();
  std::printf("TILEWIRE_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  TestServer server(device(), {});
  for (const Case& c : Cases(random())) {
    const auto ascending = [&](RawStream& raw, size_t) {
      for (uint32_t operand = 0; operand < c.operands.size(); ++operand)
        EXPECT_TRUE(raw.SendAll(operand, c.operands[operand]));
    };
    const std::string want = RunStreams(server, c.open, 1, ascending);
    EXPECT_TRUE(want == c.host) << c.name;
    for (const size_t streams : {size_t{1}, size_t{2}, 3 + random() % 13, size_t{16}}) {
      SCOPED_TRACE(std::string(c.name) + ", " + std::to_string(streams) +
                   " streams, TILEWIRE_SEED=" + std::to_string(seed));
      const uint64_t of_job = random();
      const auto dealt =
          Deal(c.operands[0].size(), static_cast<uint32_t>(c.operands.size()), streams, random);
      const std::string got = RunStreams(server, c.open, streams, [&](RawStream& raw, size_t number) {
        SendRuns(raw, dealt[number], c.operands, of_job + number);
      });
      EXPECT_TRUE(got == want);
    }
  }
  ExpectUnharmed(server);
}

TILEWIRE_ON_BOTH(StripeBits);

}  // namespace
}  // namespace tilewire::testing

// What the memory of this machine gives to n threads: two operands read, and memcpy.
#include <atomic>

#include "kernels/bench/host_probe.h"
#include "kernels/bench/host_work.h"

namespace tilewire::bench {
namespace {

constexpr int64_t kShareUnit = 4096;

class ReadWork final : public Work {
 public:
  ReadWork(int threads, int64_t ahead) : team_(threads), ahead_(ahead) {
    FillHost(team_, DType::kU64, 1, a_);
    FillHost(team_, DType::kU64, 2, b_);
  }
  Result<Check> Verify(Stream) override { return Check{.kind = Check::Kind::kNothing}; }
  Status Run(Stream) override {
    team_.Run([this](int thread) {
      const auto [begin, end] = Share(a_.bytes(), thread, team_.threads(), kShareUnit);
      sum_ += ReadBoth(a_.data() + begin, b_.data() + begin, end - begin, ahead_);
    });
    return {};
  }

 private:
  HostTeam team_;
  HostBuffer a_{kHostOperandBytes}, b_{kHostOperandBytes};
  const int64_t ahead_;
  std::atomic<uint64_t> sum_{0};  // so that nothing is optimised away
};

class CopyWork final : public Work {
 public:
  explicit CopyWork(int threads) : team_(threads) { FillHost(team_, DType::kU64, 1, from_); }
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    if (std::memcmp(from_.data(), to_.data(), static_cast<size_t>(from_.bytes())) != 0)
      return Fail(Status(Code::kInternal, "WRONG_RESULT", "the copy differs"));
    return Check{.kind = Check::Kind::kExact};
  }
  Status Run(Stream) override {
    team_.Run([this](int thread) {
      const auto [begin, end] = Share(from_.bytes(), thread, team_.threads(), kShareUnit);
      std::memcpy(to_.data() + begin, from_.data() + begin, static_cast<size_t>(end - begin));
    });
    return {};
  }

 private:
  HostTeam team_;
  HostBuffer from_{kHostOperandBytes}, to_{kHostOperandBytes};
};

}  // namespace

void AddHostLimitCases(int threads, std::vector<Case>* cases) {
  const ArraySpec spec = *MakeSpec(DType::kU64, std::vector<int64_t>{kHostOperandBytes / 8});
  for (const int64_t ahead : {0, 1024, 4096}) {
    Case read =
        HostCase("host_memory", "read of two operands, prefetch " + std::to_string(ahead), threads, spec);
    read.bytes = read.memory_bytes = 2 * kHostOperandBytes;
    read.defines_limit = HostReadLimit(threads);
    read.prepare = [threads, ahead](Stream) -> Result<std::unique_ptr<Work>> {
      return std::make_unique<ReadWork>(threads, ahead);
    };
    cases->push_back(std::move(read));
  }
  Case copy = HostCase("host_memory", "memcpy", threads, spec);
  copy.bytes = copy.memory_bytes = 2 * kHostOperandBytes;
  copy.defines_limit = HostCopyLimit(threads);
  copy.prepare = [threads](Stream) -> Result<std::unique_ptr<Work>> {
    return std::make_unique<CopyWork>(threads);
  };
  cases->push_back(std::move(copy));
}

}  // namespace tilewire::bench

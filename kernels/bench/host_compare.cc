// All metrics of two arrays in one pass on the CPU device, beside their RMSE alone.
#include <bit>
#include <cmath>

#include "kernels/bench/host_work.h"
#include "kernels/bench/tree_sum.h"
#include "kernels/compare/problem.h"
#include "kernels/rmse/problem.h"

namespace tilewire::bench {
namespace {

/// Loops of kernels on the threads of a bench.
class BenchTeam final : public Team {
 public:
  explicit BenchTeam(int threads) : team_(threads) {}
  int threads() const override { return team_.threads(); }
  HostTeam& team() { return team_; }

 private:
  void Share(int64_t items, int64_t grain, const Pieces& body) override {
    const int64_t step = std::max<int64_t>(grain, 1);
    team_.Run([&](int thread) {
      const auto [first, end] = bench::Share(items, thread, team_.threads());
      for (int64_t begin = first; begin < end; begin += step) body(begin, std::min(begin + step, end));
    });
  }

  HostTeam team_;
};

/// Bits of all metrics of one segment without NaNs.
template <typename T>
std::vector<uint64_t> Expected(const std::byte* operand_a, const std::byte* operand_b, int64_t n) {
  const auto *a = reinterpret_cast<const T*>(operand_a), *b = reinterpret_cast<const T*>(operand_b);
  const auto count = static_cast<double>(n);
  const auto difference = [&](int64_t i) { return static_cast<double>(a[i]) - static_cast<double>(b[i]); };
  const double squares =
      TreeSum(n, [&](int64_t i, double acc) { return std::fma(difference(i), difference(i), acc); });
  const double magnitudes = TreeSum(n, [&](int64_t i, double acc) { return acc + std::fabs(difference(i)); });
  const double differences = TreeSum(n, [&](int64_t i, double acc) { return acc + difference(i); });
  double largest = -1;
  uint64_t index = 0, unequal = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::fabs(difference(i));
    unequal += d != 0;
    if (d <= largest) continue;
    largest = d;
    index = static_cast<uint64_t>(i);
  }
  std::vector<uint64_t> bits;
  for (const double value : {std::sqrt(squares / count), squares / count, squares, magnitudes / count,
                             magnitudes, differences / count, differences, largest})
    bits.push_back(std::bit_cast<uint64_t>(value));
  bits.insert(bits.end(), {index, 0, unequal});
  return bits;
}

class HostCompareWork final : public Work {
 public:
  HostCompareWork(std::shared_ptr<const Problem> problem, int threads)
      : problem_(std::move(problem)),
        team_(threads),
        a_(operand().bytes()),
        b_(operand().bytes()),
        result_(problem_->result_bytes()),
        scratch_(problem_->scratch_bytes()) {
    FillHost(team_.team(), operand().dtype, 1, a_);
    FillHost(team_.team(), operand().dtype, uint64_t{1} << 40, b_);
  }

  Status Run(Stream) override {
    Buffers buffers{.operands = {a_.data(), b_.data()}, .scratch = scratch_.data()};
    problem_->PlaceResults(result_.data(), &buffers);
    problem_->RunHost({0}, buffers, team_);
    return {};
  }

  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    auto* const expected_of = operand().dtype == DType::kF32   ? Expected<float>
                              : operand().dtype == DType::kF64 ? Expected<double>
                                                               : Expected<uint8_t>;
    const std::vector<uint64_t> expected = expected_of(a_.data(), b_.data(), operand().shape.elements());
    for (size_t i = 0; i < problem_->results().size(); ++i)
      if (std::memcmp(result_.data() + problem_->result_offset(i), &expected[i], 8) != 0)
        return Fail(Status(Code::kInternal, "WRONG_RESULT", "result " + std::to_string(i) + " differs"));
    return Check{.kind = Check::Kind::kExact};
  }

 private:
  const ArraySpec& operand() const { return problem_->operands()[0]; }
  const std::shared_ptr<const Problem> problem_;
  BenchTeam team_;
  HostBuffer a_, b_, result_, scratch_;
};

}  // namespace

void AddHostCompareCases(int threads, std::vector<Case>* cases) {
  for (const DType dtype : {DType::kU8, DType::kF32, DType::kF64}) {
    const ArraySpec spec = *MakeSpec(dtype, std::vector<int64_t>{kHostOperandBytes / SizeOf(dtype)});
    const std::shared_ptr<const Problem> all =
        compare::MakeProblem(*compare::Plan::Make(spec, {}, {}))->Whole();
    const std::shared_ptr<const Problem> alone =
        rmse::MakeProblem(*rmse::Plan::Make(spec, {}, rmse::Output::kRmse))->Whole();
    for (const auto& problem : {alone, all}) {
      Case one = HostCase("host_compare", std::string(Name(dtype)) + spec.shape.ToString(), threads, spec);
      one.implementation = problem == all ? "all metrics" : "rmse alone";
      one.bytes = 2 * spec.bytes();
      one.memory_bytes = 2 * spec.bytes() + problem->result_bytes() + problem->scratch_bytes();
      one.limit = HostReadLimit(threads);
      one.prepare = [problem, threads](Stream) -> Result<std::unique_ptr<Work>> {
        return std::make_unique<HostCompareWork>(problem, threads);
      };
      cases->push_back(std::move(one));
    }
  }
}

}  // namespace tilewire::bench

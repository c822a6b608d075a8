// The gaussian pdf of the CPU device, against memcpy on as many threads.
#include <cmath>
#include <numbers>

#include "kernels/bench/host_work.h"
#include "kernels/gaussian/gaussian.h"

namespace tilewire::bench {
namespace {

constexpr double kMean = 1.25, kStddev = 0.375;

class GaussianWork final : public Work {
 public:
  GaussianWork(gaussian::Plan plan, int threads)
      : plan_(std::move(plan)), team_(threads), in_(plan_.input().bytes()), out_(plan_.input().bytes()) {
    FillHost(team_, plan_.input().dtype, 1, in_);
  }

  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    Check check{.kind = Check::Kind::kRelative};
    const bool wide = plan_.input().dtype == DType::kF64;
    const auto read = [&](const HostBuffer& buffer, int64_t i) -> long double {
      double value;
      float narrow;
      if (wide) std::memcpy(&value, buffer.data() + 8 * i, 8);
      if (!wide) std::memcpy(&narrow, buffer.data() + 4 * i, 4);
      return wide ? static_cast<long double>(value) : static_cast<long double>(narrow);
    };
    for (uint64_t i = 0; i < 1'000'000; ++i) {
      const auto at = static_cast<int64_t>(Mix(i) % static_cast<uint64_t>(plan_.input().shape.elements()));
      const long double z = (read(in_, at) - static_cast<long double>(kMean)) / kStddev;
      const long double expected =
          std::exp(-z * z / 2) / (kStddev * std::sqrt(2 * std::numbers::pi_v<long double>));
      const long double error = std::abs(read(out_, at) - expected) / expected;
      if (!(error >= 0)) return Fail(Status(Code::kInternal, "WRONG_RESULT", "a result is NaN"));
      check.relative_error = std::max(check.relative_error, static_cast<double>(error));
    }
    const double allowed = wide ? 0x1p-52 : 0x1p-23;  // one unit in the last place, at most
    if (check.relative_error > allowed)
      return Fail(
          Status(Code::kInternal, "WRONG_RESULT", "relative error " + std::to_string(check.relative_error)));
    return check;
  }

  Status Run(Stream) override {
    const gaussian::Range whole = plan_.whole();
    const int64_t items = gaussian::HostItems(plan_, whole);
    team_.Run([&](int thread) {
      const auto [begin, end] = Share(items, thread, team_.threads());
      gaussian::HostRange(plan_, whole, begin, end, in_.data(), out_.data());
    });
    return {};
  }

 private:
  const gaussian::Plan plan_;
  HostTeam team_;
  HostBuffer in_, out_;
};

}  // namespace

void AddHostGaussianCases(int threads, std::vector<Case>* cases) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const ArraySpec spec = *MakeSpec(dtype, std::vector<int64_t>{kHostOperandBytes / SizeOf(dtype)});
    const gaussian::Plan plan = *gaussian::Plan::Make(spec, kMean, kStddev);
    Case one = HostCase("host_gaussian", std::string(Name(dtype)) + spec.shape.ToString(), threads, spec);
    one.bytes = one.memory_bytes = 2 * spec.bytes();
    one.limit = HostCopyLimit(threads);
    one.prepare = [plan, threads](Stream) -> Result<std::unique_ptr<Work>> {
      return std::make_unique<GaussianWork>(plan, threads);
    };
    cases->push_back(std::move(one));
  }
}

}  // namespace tilewire::bench

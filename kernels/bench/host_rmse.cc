// RMSE of the CPU device over dtypes and shape families, against what the machine's memory can be read at.
#include <bit>
#include <cmath>

#include "kernels/bench/host_work.h"
#include "kernels/bench/tree_sum.h"
#include "kernels/rmse/rmse.h"

namespace tilewire::bench {
namespace {

double Half(uint16_t bits) {  // normal numbers, which is what FillHost makes
  return std::ldexp(1024 + (bits & 1023), (bits >> 10 & 31) - 25);
}

double Difference(DType dtype, const std::byte* a, const std::byte* b) {
  const auto read = [](const std::byte* from, auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const auto plain = [&](auto zero) {
    return static_cast<double>(read(a, zero)) - static_cast<double>(read(b, zero));
  };
  const auto distance = [](auto x, auto y) {
    return static_cast<double>(x < y ? static_cast<uint64_t>(y) - static_cast<uint64_t>(x)
                                     : static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  };
  const auto brain = [&](const std::byte* from) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(read(from, uint16_t{})) << 16));
  };
  switch (dtype) {
    case DType::kI8:
      return plain(int8_t{});
    case DType::kU8:
      return plain(uint8_t{});
    case DType::kI16:
      return plain(int16_t{});
    case DType::kU16:
      return plain(uint16_t{});
    case DType::kI32:
      return plain(int32_t{});
    case DType::kU32:
      return plain(uint32_t{});
    case DType::kI64:
      return distance(read(a, int64_t{}), read(b, int64_t{}));
    case DType::kU64:
      return distance(read(a, uint64_t{}), read(b, uint64_t{}));
    case DType::kF16:
      return Half(read(a, uint16_t{})) - Half(read(b, uint16_t{}));
    case DType::kBF16:
      return brain(a) - brain(b);
    case DType::kF32:
      return plain(float{});
    case DType::kF64:
      return plain(double{});
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;
  }
  return NAN;
}

/// The contract as it reads, for one segment: the way is the plan's axes, the arithmetic is written anew.
double Reference(const rmse::Plan& plan, int64_t segment, const std::byte* a, const std::byte* b) {
  const rmse::Layout& layout = plan.layout();
  const DType dtype = plan.operand().dtype;
  const int64_t base = rmse::AxesOffset(layout, false, 0, segment);
  const double sum = TreeSum(layout.elements, [&](int64_t i, double acc) {
    const int64_t at = (base + rmse::AxesOffset(layout, true, 0, i)) * SizeOf(dtype);
    const double d = Difference(dtype, a + at, b + at);
    return std::fma(d, d, acc);
  });
  return std::sqrt(sum / static_cast<double>(layout.elements));
}

class HostRmseWork final : public Work {
 public:
  HostRmseWork(rmse::Plan plan, int threads)
      : plan_(std::move(plan)),
        team_(threads),
        a_(plan_.operand().bytes()),
        b_(plan_.operand().bytes()),
        sums_(plan_.scratch_bytes()),
        result_(plan_.result().bytes()) {
    FillHost(team_, plan_.operand().dtype, 1, a_);
    FillHost(team_, plan_.operand().dtype, uint64_t{1} << 40, b_);
  }

  /// A few million elements of segments all over the array; always the first and the last.
  Result<Check> Verify(Stream stream) override {
    TILEWIRE_RETURN_IF_ERROR(Run(stream));
    const int64_t segments = plan_.layout().segments;
    const int64_t sample =
        std::min(segments, std::max<int64_t>(2, (int64_t{1} << 22) / plan_.layout().elements));
    for (int64_t i = 0; i < sample; ++i) {
      const int64_t segment = sample > 1 ? i * (segments - 1) / (sample - 1) : 0;
      const double expected = Reference(plan_, segment, a_.data(), b_.data());
      double value;
      std::memcpy(&value, result_.data() + 8 * segment, 8);
      if (std::bit_cast<uint64_t>(value) != std::bit_cast<uint64_t>(expected))
        return Fail(
            Status(Code::kInternal, "WRONG_RESULT", "segment " + std::to_string(segment) + " differs"));
    }
    return Check{.kind = Check::Kind::kExact};
  }

  Status Run(Stream) override {
    auto* sums = reinterpret_cast<double*>(sums_.data());
    auto* result = reinterpret_cast<double*>(result_.data());
    const rmse::Range whole = plan_.whole();
    team_.Run([&](int thread) {
      const auto [begin, end] = Share(whole.items(), thread, team_.threads());
      rmse::HostRange(plan_, whole, begin, end, a_.data(), b_.data(), sums);
    });
    team_.Run([&](int thread) {
      const auto [begin, end] = Share(plan_.layout().segments, thread, team_.threads());
      rmse::HostFinish(plan_, begin, end, sums, result);
    });
    return {};
  }

 private:
  const rmse::Plan plan_;
  HostTeam team_;
  HostBuffer a_, b_, sums_, result_;
};

struct Family {
  const char* name;
  DType dtype;
  std::vector<int64_t> dims;  // 0: as many as make the operand kHostOperandBytes
  std::vector<int32_t> axes;
};

std::vector<Family> Families() {
  std::vector<Family> all;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) all.push_back({"one segment", info.dtype, {0}, {0}});
  for (const int64_t n : {1, 2, 3, 4, 8, 16, 50, 100, 1000, 10000})
    all.push_back({"segments", DType::kF32, {0, n}, {1}});
  for (const int64_t n : {3, 16, 50, 200, 1000, 10000}) all.push_back({"columns", DType::kF32, {0, n}, {0}});
  for (const int64_t n : {16, 1000}) all.push_back({"columns", DType::kF32, {n, 0}, {0}});
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kBF16, DType::kF64}) {
    all.push_back({"segments", dtype, {0, 16}, {1}});
    all.push_back({"columns", dtype, {0, 1000}, {0}});
  }
  all.push_back({"middle axis", DType::kF32, {0, 512, 512}, {1}});
  all.push_back({"middle axis", DType::kF32, {0, 1024, 16}, {1}});
  all.push_back({"two axes", DType::kF32, {64, 1000, 0}, {0, 2}});
  all.push_back({"two axes", DType::kF32, {0, 24, 120}, {0, 2}});
  all.push_back({"two axes", DType::kF32, {0, 4, 3, 4}, {1, 3}});
  return all;
}

}  // namespace

void AddHostRmseCases(int threads, std::vector<Case>* cases) {
  for (Family& family : Families()) {
    int64_t known = SizeOf(family.dtype);
    for (const int64_t dim : family.dims) known *= dim > 0 ? dim : 1;
    for (int64_t& dim : family.dims) dim = dim > 0 ? dim : kHostOperandBytes / known;
    const ArraySpec spec = *MakeSpec(family.dtype, family.dims);
    const rmse::Plan plan = *rmse::Plan::Make(spec, family.axes, rmse::Output::kRmse);
    Case one = HostCase(
        "host_rmse", family.name + std::string(" ") + std::string(Name(spec.dtype)) + spec.shape.ToString(),
        threads, spec);
    one.axes = family.axes;
    one.bytes = 2 * spec.bytes() + plan.result().bytes();
    one.memory_bytes = 2 * spec.bytes() + plan.result().bytes() + plan.scratch_bytes();
    one.limit = HostReadLimit(threads);
    one.prepare = [plan, threads](Stream) -> Result<std::unique_ptr<Work>> {
      return std::make_unique<HostRmseWork>(plan, threads);
    };
    cases->push_back(std::move(one));
  }
}

}  // namespace tilewire::bench

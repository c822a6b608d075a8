// The host kernels at the edges of how they work: groups and blocks of columns, splits over threads, special
// values, and the bytes around an operand. Everything on every instruction set, bit for bit against the
// contract.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>

#include "kernels/rmse/host_isa.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::rmse {
namespace {

using reference::Bits;
using reference::Bytes;

constexpr double kUntouched = -1e300;

std::vector<uint64_t> AllBits(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  for (const double value : values) bits.push_back(Bits(value));
  return bits;
}

size_t ItemCount(const Plan& plan) {
  return static_cast<size_t>(plan.layout().segments * plan.layout().tiles);
}

/// All items as one range on one instruction set, and its own last step.
std::vector<double> RunOn(const Plan& plan, const HostIsa& isa, const void* a, const void* b) {
  std::vector<double> sums(ItemCount(plan), kUntouched);
  const Range whole = plan.whole();
  isa.tiles({a, b, sums.data(), &plan.layout(), whole, 0, whole.items(), plan.operand().dtype});
  std::vector<double> result(static_cast<size_t>(plan.layout().segments), kUntouched);
  if (plan.layout().tiles == 1) {
    isa.results(plan.output(), sums.data(), plan.layout().segments,
                static_cast<double>(plan.layout().elements), result.data());
  } else {
    HostFinish(plan, 0, plan.layout().segments, sums.data(), result.data());
  }
  return result;
}

void Check(const reference::RandomCase& one, const Bytes& a, const Bytes& b) {
  const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
  const auto expected = AllBits(reference::Rmse(one.spec, one.axes, one.output, a, b));
  for (const HostIsa& isa : SupportedHostIsas())
    ASSERT_EQ(AllBits(RunOn(plan, isa, a.data(), b.data())), expected)
        << reference::Describe(one) << " on " << isa.name;
}

std::vector<DType> RealDTypes() {
  std::vector<DType> all;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) all.push_back(info.dtype);
  return all;
}

// Widths around vectors, lines and groups; rows around blocks, rounds and tiles.
TEST(RmseHost, ColumnsOfEveryWidthAndHeightThatMatters) {
  const std::vector<DType> dtypes = RealDTypes();
  std::mt19937_64 random(21);
  size_t turn = 0;
  for (const int64_t width : {1,  2,   3,   5,   7,   8,    9,    15,   17,   31,   33,   63,   64,
                              65, 127, 200, 511, 513, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 4100}) {
    for (const int64_t rows : {2,   3,   4,   5,    8,    15,   16,   17,   64,   129,  255,  256,
                               257, 511, 700, 1023, 1024, 1025, 1280, 1281, 4095, 4096, 4097, 8300}) {
      if (width * rows > 70000) continue;
      // With a leading batch axis now and then, and rows that are not evenly spaced.
      const DType dtype = dtypes[turn++ % dtypes.size()];
      reference::RandomCase one{
          *MakeSpec(dtype, std::vector<int64_t>{rows, width}), {0}, Output::kSumSquares};
      if (turn % 5 == 0) one = {*MakeSpec(dtype, std::vector<int64_t>{2, rows, width}), {1}, Output::kRmse};
      if (turn % 7 == 0)
        one = {*MakeSpec(dtype, std::vector<int64_t>{rows, 2, 2, width}), {0, 2}, Output::kMse};
      Check(one, reference::RandomOperand(one.spec, true, random),
            reference::RandomOperand(one.spec, true, random));
      if (HasFatalFailure()) return;
    }
  }
}

// Runs shorter and longer than a vector, a round and what is copied first.
TEST(RmseHost, RunsOfEveryLength) {
  const std::vector<DType> dtypes = RealDTypes();
  std::mt19937_64 random(22);
  size_t turn = 0;
  for (const int64_t run : {2, 3, 4, 7, 8, 9, 16, 31, 100, 255, 256, 257, 511, 512, 513, 1000, 4096, 5000}) {
    for (const int64_t outer : {2, 3, 5, 17, 40, 129, 1000, 2100}) {
      if (run * outer > 30000) continue;
      const reference::RandomCase one{
          *MakeSpec(dtypes[turn++ % dtypes.size()], std::vector<int64_t>{outer, 2, run}),
          {0, 2},
          Output::kRmse};
      Check(one, reference::RandomOperand(one.spec, true, random),
            reference::RandomOperand(one.spec, true, random));
      if (HasFatalFailure()) return;
    }
  }
}

/// Bit patterns worth meeting: zeros of both signs, the least and largest subnormal and normal numbers,
/// infinities, quiet and signalling NaNs; the extremes of integers.
std::vector<uint64_t> Specials(DType dtype) {
  const auto size = static_cast<int>(8 * SizeOf(dtype));
  const uint64_t sign = uint64_t{1} << (size - 1);
  if (Info(dtype).kind != DTypeKind::kFloat) return {0, 1, sign - 1, sign, sign + 1, sign | (sign - 1)};
  const int mantissa = dtype == DType::kF64 ? 52 : dtype == DType::kF32 ? 23 : dtype == DType::kF16 ? 10 : 7;
  const uint64_t one = uint64_t{1} << mantissa, infinity = (sign - 1) / one * one;
  std::vector<uint64_t> all;
  for (const uint64_t bits :
       {uint64_t{0}, uint64_t{1}, one - 1, one, infinity - 1, infinity, infinity + 1, infinity + one / 2})
    for (const uint64_t with : {uint64_t{0}, sign}) all.push_back(bits | with);
  return all;
}

TEST(RmseHost, SpecialValuesOnEveryPath) {
  const struct {
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
  } shapes[] = {{{500, 1}, {1}},      {{300, 2}, {1}},       {{200, 5}, {1}},        {{100, 16}, {1}},
                {{90, 50}, {1}},      {{30, 200}, {1}},      {{9, 1000}, {1}},       {{2, 9000}, {1}},
                {{1300, 9}, {0}},     {{40, 300}, {0}},      {{300, 1100}, {0}},     {{7, 30, 40}, {1}},
                {{9, 5, 60}, {0, 2}}, {{6, 3, 600}, {0, 2}}, {{2, 50, 3, 4}, {1, 3}}};
  std::mt19937_64 random(23);
  for (const DType dtype : RealDTypes()) {
    const std::vector<uint64_t> specials = Specials(dtype);
    const auto size = static_cast<size_t>(SizeOf(dtype));
    for (const auto& shape : shapes) {
      // Often enough to meet, seldom enough that some results are neither infinite nor NaN.
      for (const uint64_t every : {2, 60, 2000}) {
        const reference::RandomCase one{*MakeSpec(dtype, shape.dims), shape.axes, Output::kRmse};
        Bytes operands[2];
        for (Bytes& bytes : operands) {
          bytes = reference::RandomOperand(one.spec, true, random);
          for (size_t at = 0; at < bytes.size(); at += size)
            if (random() % every == 0) std::memcpy(&bytes[at], &specials[random() % specials.size()], size);
        }
        Check(one, operands[0], operands[1]);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(RmseHost, DifferencesThatOverflowAFloatAreExact) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float a[3] = {kMax, -kMax, std::numeric_limits<float>::denorm_min()}, b[3] = {-kMax, kMax, 0};
  const Plan plan =
      *Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{3, 1}), std::vector<int32_t>{1}, Output::kRmse);
  for (const HostIsa& isa : SupportedHostIsas()) {
    const std::vector<double> result = RunOn(plan, isa, a, b);
    EXPECT_EQ(result, (std::vector<double>{2.0 * kMax, 2.0 * kMax, 0x1p-149})) << isa.name;
  }
}

/// Memory whose first or last byte borders on pages that must not be touched.
class Guarded {
 public:
  Guarded(const Bytes& bytes, bool at_end) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    const size_t inner = (bytes.size() + page_ - 1) / page_ * page_;
    total_ = inner + 2 * page_;
    base_ = static_cast<unsigned char*>(mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_ + page_, inner, PROT_READ | PROT_WRITE), 0);
    data_ = base_ + page_ + (at_end ? inner - bytes.size() : 0);
    std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~Guarded() { munmap(base_, total_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  const void* data() const { return data_; }

 private:
  size_t page_, total_ = 0;
  unsigned char *base_ = nullptr, *data_ = nullptr;
};

TEST(RmseHost, NothingOutsideOfTheOperandsIsRead) {
  std::mt19937_64 random(24);
  for (int i = 0; i < 400; ++i) {
    const auto one = reference::MakeRandomCase(9000, random);
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const Bytes a = reference::RandomOperand(one.spec, true, random),
                b = reference::RandomOperand(one.spec, true, random);
    const auto expected = AllBits(reference::Rmse(one.spec, one.axes, one.output, a, b));
    for (const bool at_end : {false, true}) {
      const Guarded guarded_a(a, at_end), guarded_b(b, at_end);
      for (const HostIsa& isa : SupportedHostIsas())
        ASSERT_EQ(AllBits(RunOn(plan, isa, guarded_a.data(), guarded_b.data())), expected)
            << reference::Describe(one) << " on " << isa.name;
    }
  }
}

TEST(RmseHost, ThePiecesOfAnyNumberOfThreadsGiveTheSameBits) {
  std::mt19937_64 random(25);
  int split = 0;
  for (int i = 0; i < 400; ++i) {
    const auto one = reference::MakeRandomCase(120000, random);
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const Bytes a = reference::RandomOperand(one.spec, true, random),
                b = reference::RandomOperand(one.spec, true, random);
    std::vector<double> whole(ItemCount(plan), kUntouched), pieces(ItemCount(plan), kUntouched);
    const Range all = plan.whole();
    HostRange(plan, all, 0, all.items(), a.data(), b.data(), whole.data());
    const int64_t grain = HostGrain(plan, all, 1 + static_cast<int>(random() % 64));
    ASSERT_GE(grain, 1) << reference::Describe(one);
    split += grain < all.items();
    for (int64_t end = all.items(); end > 0; end = (end - 1) / grain * grain)  // from the back
      HostRange(plan, all, (end - 1) / grain * grain, end, a.data(), b.data(), pieces.data());
    ASSERT_EQ(AllBits(pieces), AllBits(whole)) << reference::Describe(one);
  }
  EXPECT_GT(split, 40);
}

TEST(RmseHost, GrainsKeepManyThreadsBusyAndColumnsWide) {
  const auto grain = [](std::vector<int64_t> dims, std::vector<int32_t> axes, int threads) {
    const Plan plan = *Plan::Make(*MakeSpec(DType::kF32, dims), axes, Output::kRmse);
    const Range whole = plan.whole();
    return std::pair(HostGrain(plan, whole, threads), whole.items());
  };
  EXPECT_EQ(grain({1 << 24}, {0}, 16).first, 8);          // tiles of 16 KiB in 256 KiB of both operands
  EXPECT_EQ(grain({1 << 16, 1000}, {0}, 1).first, 4000);  // 16 tiles of 1000 columns in four pieces
  EXPECT_EQ(grain({1 << 16, 200}, {0}, 4).first, 200);    // whole rows rather than more pieces
  const auto [columns, items] = grain({4096, 4096}, {0}, 64);
  EXPECT_GE(items / columns, 64);  // one tile: many pieces,
  EXPECT_GE(columns, 64);          // but of 256 bytes a row
}

}  // namespace
}  // namespace tilewire::rmse

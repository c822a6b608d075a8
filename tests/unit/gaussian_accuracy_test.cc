// How far results are from the exact values, over dense sweeps: the bounds that kernels/gaussian/README.md
// derives.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/unit/gaussian_reference.h"

namespace tilewire::gaussian {
namespace {

using reference::Distribution;
using reference::FromBits;

// Units in the last place. Subnormal f64 results are rounded twice.
constexpr double kF32Bound = 0.54;
constexpr double kF64Bound = 0.82, kF64SubnormalBound = 0.91;

constexpr Distribution kAccuracyDistributions[] = {
    {0, 1},         {0, 0.3989422804014327},
    {0.3, 1.1},     {-2, 1.999999},
    {1e6, 1.3},     {12345.678, 1e4},
    {1e-3, 1e-5},   {0, 1e-30},
    {1e30, 1e29},   {0, 1e-36},
    {0, 3e-39},     {1e-40, 7e-41},
    {0, 1e-100},    {1e-269, 1e-270},
    {0, 1e-290},    {0, 1e-305},
    {0, 2.3e-308},  {1e-310, 3e-311},
    {0, 2e-321},    {1e150, 1e149},
    {0, 1e270},     {0, 1e290},
    {1e299, 1e300}, {-1e308, 1e308},
};

TEST(GaussianReference, AgreesWithTheCorrectlyRoundedPoints) {
  for (const reference::PointBlock& block : reference::CorrectlyRoundedPoints()) {
    for (const reference::Point& point : block.points) {
      const bool is_f32 = block.dtype == DType::kF32;
      const double x = is_f32 ? double{FromBits<float>(point.x)} : FromBits<double>(point.x);
      const reference::Value exact = Pdf(x, block.distribution);
      const double error = is_f32 ? reference::UlpError(FromBits<float>(point.y), exact)
                                  : reference::UlpError(FromBits<double>(point.y), exact);
      const bool infinite =
          is_f32 ? std::isinf(FromBits<float>(point.y)) : std::isinf(FromBits<double>(point.y));
      ASSERT_LE(error, infinite ? 1 : 0.5 + 1e-9) << block.distribution.ToString() << " x " << x;
    }
  }
}

template <typename T>
struct Worst {
  double normal = 0, subnormal = 0;
  int64_t results = 0, nearest = 0;  ///< all, and those that are the number next to the exact value
};

/// `count` points from the peak to where the pdf vanishes in T.
template <typename T>
void Sweep(Distribution d, int64_t count, Worst<T>* worst) {
  std::mt19937_64 random(11);
  const double peak = -std::log2(d.stddev * 1e10) - 1.33 + 10 * std::log2(10.0);  // stddev may be subnormal
  const double last = std::sqrt(std::max(1.0, 2 * std::log(2.0) * (peak + (sizeof(T) == 4 ? 151 : 1076))));
  std::uniform_real_distribution<double> t(-last, last);
  std::vector<T> x;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<T>(d.mean + d.stddev * t(random));
    x.push_back(std::isfinite(value) ? value : T(0));
  }
  const std::vector<T> y = reference::Run(*SupportedHostIsas().back(), d, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = reference::UlpError(y[i], reference::Pdf(double{x[i]}, d));
    if (std::isinf(y[i])) {
      ASSERT_LE(error, 1) << d.ToString() << " x " << x[i];
      continue;
    }
    worst->results += y[i] != 0;
    worst->nearest += y[i] != 0 && error <= 0.5;
    double& most = y[i] < std::numeric_limits<T>::min() ? worst->subnormal : worst->normal;
    most = std::max(most, error);
  }
}

template <typename T>
Worst<T> SweepAll(int64_t count) {
  Worst<T> worst;
  for (const Distribution& d : kAccuracyDistributions) Sweep<T>(d, count, &worst);
  std::printf("f%zu: at most %.4f ulp, subnormal results %.4f; %.2f%% are the nearest number\n",
              8 * sizeof(T), worst.normal, worst.subnormal,
              100 * static_cast<double>(worst.nearest) / static_cast<double>(worst.results));
  return worst;
}

TEST(GaussianAccuracy, F32) {
  const auto worst = SweepAll<float>(20000);
  EXPECT_LT(worst.normal, kF32Bound);
  EXPECT_LT(worst.subnormal, kF32Bound);
  EXPECT_GT(worst.normal, 0.5) << "some result lies close to the middle of two numbers";
}

TEST(GaussianAccuracy, F64) {
  const auto worst = SweepAll<double>(20000);
  EXPECT_LT(worst.normal, kF64Bound);
  EXPECT_LT(worst.subnormal, kF64SubnormalBound);
  EXPECT_GT(worst.normal, 0.5) << "some result lies close to the middle of two numbers";
}

// A minute; for the README's table.
TEST(GaussianAccuracy, DISABLED_Dense) {
  EXPECT_LT(SweepAll<float>(1000000).normal, kF32Bound);
  EXPECT_LT(SweepAll<double>(1000000).subnormal, kF64SubnormalBound);
}

/// One thread; the README's table of rates.
template <typename T>
void PrintHostRates(int64_t count) {
  std::vector<T> x(static_cast<size_t>(count)), y(x.size());
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < x.size(); ++i) x[i] = i < 65536 ? static_cast<T>(normal(random)) : x[i - 65536];
  const Plan plan = reference::MakePlan(reference::kDTypeOf<T>, count, {0.1, 1.1});
  for (const HostIsa* isa : SupportedHostIsas()) {
    double best = 1e9;
    for (int i = 0; i < 9; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if constexpr (sizeof(T) == 4)
        isa->f32(MakeF32Constants(plan.mean(), plan.stddev()), x.data(), y.data(), count);
      else
        isa->f64(MakeF64Constants(plan.mean(), plan.stddev()), x.data(), y.data(), count);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::printf("f%zu %-10s %6.3f ns an element, %5.1f GB/s in and out\n", 8 * sizeof(T), isa->name,
                best / static_cast<double>(count) * 1e9,
                2e-9 * static_cast<double>(plan.input().bytes()) / best);
  }
}

TEST(GaussianHost, DISABLED_HostRates) {
  PrintHostRates<float>(1 << 24);
  PrintHostRates<double>(1 << 23);
}

}  // namespace
}  // namespace tilewire::gaussian

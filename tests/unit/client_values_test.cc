// Results as numbers on paper.
#include "client/cli/values.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/client_testing.h"

namespace tilewire::cli {
namespace {

using client::testing::Spec;
using ::testing::ElementsAre;

template <typename T>
Values Of(DType dtype, const std::vector<int64_t>& dims, const std::vector<T>& numbers) {
  Values values{Spec(dtype, dims), std::vector<uint8_t>(numbers.size() * sizeof(T))};
  std::memcpy(values.bytes.data(), numbers.data(), values.bytes.size());
  return values;
}

template <typename T>
std::vector<std::string> Texts(DType dtype, const std::vector<T>& numbers) {
  return ValueTexts(Of(dtype, {static_cast<int64_t>(numbers.size())}, numbers)).value();
}

TEST(CliValues, AreTheShortestTextsOfEveryDtype) {
  EXPECT_THAT(Texts<double>(DType::kF64, {0.1, -0.0, NAN, INFINITY}), ElementsAre("0.1", "-0", "nan", "inf"));
  EXPECT_THAT(Texts<float>(DType::kF32, {0.1f, -INFINITY, 16777216}), ElementsAre("0.1", "-inf", "16777216"));
  EXPECT_THAT(Texts<uint16_t>(DType::kF16, {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x8000}),
              ElementsAre("1", "-2", "5.9604645e-08", "65504", "inf", "-inf", "nan", "-0"));
  EXPECT_THAT(Texts<uint16_t>(DType::kBF16, {0x3f80, 0xc000, 0x7f80}), ElementsAre("1", "-2", "inf"));
  EXPECT_THAT(Texts<uint8_t>(DType::kBool, {0, 1}), ElementsAre("0", "1"));
  EXPECT_THAT(Texts<int8_t>(DType::kI8, {-128, 127}), ElementsAre("-128", "127"));
  EXPECT_THAT(Texts<uint8_t>(DType::kU8, {255}), ElementsAre("255"));
  EXPECT_THAT(Texts<int16_t>(DType::kI16, {-32768}), ElementsAre("-32768"));
  EXPECT_THAT(Texts<uint16_t>(DType::kU16, {65535}), ElementsAre("65535"));
  EXPECT_THAT(Texts<int32_t>(DType::kI32, {INT32_MIN}), ElementsAre("-2147483648"));
  EXPECT_THAT(Texts<uint32_t>(DType::kU32, {UINT32_MAX}), ElementsAre("4294967295"));
  EXPECT_THAT(Texts<int64_t>(DType::kI64, {INT64_MIN}), ElementsAre("-9223372036854775808"));
  EXPECT_THAT(Texts<uint64_t>(DType::kU64, {UINT64_MAX}), ElementsAre("18446744073709551615"));
  EXPECT_EQ(ValueTexts(Of<double>(DType::kC64, {1}, {0})).error().code(), Code::kUnimplemented);
}

/// An operation whose results are called as asked for.
client::OperationInfo Info() {
  return {.descriptor = nullptr,
          .member = 0,
          .shown = client::Shown::kNamed,
          .json = "metrics",
          .result_names =
              [](const Attributes& attributes) {
                std::vector<std::string> names;
                for (const int32_t each : attributes.integers("which"))
                  names.emplace_back(each == 0 ? "largest" : "where");
                return names;
              },
          .derived = {{"share", "largest", [](double value, double all) { return value / all; }},
                      {"other", "smallest", [](double value, double) { return value; }}},
          .published = nullptr};
}

const Attributes kWhich{{"which", std::vector<int32_t>{1, 0}}};

TEST(CliValues, NamedResultsAreALineEach) {
  const auto single = Named(
      Info(), kWhich, {Of<int64_t>(DType::kI64, {}, {-1}), Of<double>(DType::kF64, {}, {NAN})}, std::nullopt);
  EXPECT_EQ(TextOf(single).value(), "where -1\nlargest nan\n");
  EXPECT_EQ(JsonOf(single)->dump(), R"({"where":-1,"largest":"nan"})");
  const auto batch =
      Named(Info(), kWhich,
            {Of<uint64_t>(DType::kU64, {2}, {3, UINT64_MAX}), Of<double>(DType::kF64, {2}, {0.5, 1e300})},
            std::nullopt);
  EXPECT_EQ(TextOf(batch).value(), "where 3 18446744073709551615\nlargest 0.5 1e+300\n");
  EXPECT_EQ(JsonOf(batch)->dump(), R"({"where":[3,18446744073709551615],"largest":[0.5,1e+300]})");
}

TEST(CliValues, WhatIsDerivedFollowsWhereItsResultIsThereAndANumberIsGiven) {
  const std::vector<Values> results{Of<int64_t>(DType::kI64, {2}, {7, 9}),
                                    Of<float>(DType::kF32, {2}, {0.5f, -INFINITY})};
  EXPECT_EQ(TextOf(Named(Info(), kWhich, results, 4.0)).value(),
            "where 7 9\nlargest 0.5 -inf\nshare 0.125 -inf\n");
  EXPECT_EQ(Named(Info(), {{"which", std::vector<int32_t>{1, 1}}}, results, 4.0).size(), 2u);
}

TEST(CliValues, LimitsHoldForEveryValueAndNanIsAboveAll) {
  const auto above = [](double first, double second, double most) {
    const auto named = Named(
        Info(), kWhich,
        {Of<int64_t>(DType::kI64, {2}, {7, 9}), Of<double>(DType::kF64, {2}, {first, second})}, std::nullopt);
    return AboveLimits(named, std::vector<Limit>{{"where", 9}, {"largest", most}});
  };
  EXPECT_THAT(above(0.25, 0.25, 0.25), ElementsAre());
  EXPECT_THAT(above(0.25, 0.5, 0.25), ElementsAre("largest is 0.5; allowed: 0.25 at most"));
  EXPECT_THAT(above(NAN, 0, 1e300), ElementsAre("largest is nan; allowed: 1e+300 at most"));
  EXPECT_THAT(above(-INFINITY, 0, 0), ElementsAre());
}

TEST(CliValues, OthersAreAValueALine) {
  const client::OperationInfo info{
      .descriptor = nullptr, .member = 0, .shown = client::Shown::kValues, .published = nullptr};
  const auto named = Named(info, {}, {Of<double>(DType::kF64, {3}, {1, -INFINITY, 0.1})}, std::nullopt);
  EXPECT_EQ(TextOf(named).value(), "1\n-inf\n0.1\n");
  EXPECT_EQ(JsonOf(named)->dump(), R"([1.0,"-inf",0.1])");
}

TEST(CliValues, ZeroKeepsItsSignInJson) {
  const client::OperationInfo info{
      .descriptor = nullptr, .member = 0, .shown = client::Shown::kValues, .published = nullptr};
  const auto json = [&](Values values) {
    return JsonOf(Named(info, {}, {std::move(values)}, std::nullopt))->dump();
  };
  EXPECT_EQ(json(Of<double>(DType::kF64, {2}, {0.0, -0.0})), "[0.0,-0.0]");
  EXPECT_EQ(json(Of<float>(DType::kF32, {2}, {0.0f, -0.0f})), "[0,-0.0]");
  EXPECT_EQ(json(Of<uint16_t>(DType::kF16, {1}, {0x8000})), "[-0.0]");
}

}  // namespace
}  // namespace tilewire::cli

// Figures of measurements: statistics, numbers as text, tables, pieces of pictures.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/figures/statistics.h"
#include "kernels/figures/svg.h"
#include "kernels/figures/text.h"
#include "tests/unit/xml_check.h"

namespace tilewire {
namespace {

using testing::XmlReader;

TEST(Figures, QuantilesLieBetweenNeighbours) {
  const std::vector<double> values = {4, 8, 1, 2};
  EXPECT_DOUBLE_EQ(Quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(Median(values), 3);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 8);
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.3), 5);
  EXPECT_EQ(Quantile({}, 0.5), 0);
}

TEST(Figures, SummaryOfUnsortedRuns) {
  const Summary summary = Summarize({5, 1, 3, 2, 4});
  EXPECT_EQ(summary.runs, 5);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.quarter, 2);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.mean, 3);
  EXPECT_DOUBLE_EQ(summary.three_quarters, 4);
  EXPECT_DOUBLE_EQ(summary.max, 5);
  EXPECT_DOUBLE_EQ(summary.spread(), 2.0 / 3);
  EXPECT_NEAR(summary.uncertainty(), 2.0 / 3 / 2.2360679, 1e-6);
}

TEST(Figures, OneOutlierMovesTheMaximumAlone) {
  std::vector<double> seconds(99, 1.0);
  seconds.push_back(1000);
  const Summary summary = Summarize(seconds);
  EXPECT_DOUBLE_EQ(summary.median, 1);
  EXPECT_DOUBLE_EQ(summary.spread(), 0);
  EXPECT_DOUBLE_EQ(summary.max, 1000);
}

TEST(Figures, NothingMeasuredIsZero) {
  const Summary summary = Summarize({});
  EXPECT_EQ(summary.runs, 0);
  EXPECT_EQ(summary.spread(), 0);
  EXPECT_EQ(summary.uncertainty(), 0);
}

TEST(Figures, GeometricMean) {
  EXPECT_NEAR(GeometricMean(std::vector<double>{1, 4, 16}), 4, 1e-12);
  EXPECT_EQ(GeometricMean({}), 0);
}

TEST(Figures, Numbers) {
  EXPECT_EQ(FormatFixed(2.345, 1), "2.3");
  EXPECT_EQ(FormatNumber(0.52), "0.52");
  EXPECT_EQ(FormatNumber(3.14159), "3.14");
  EXPECT_EQ(FormatNumber(1230.4), "1230");
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(FormatDouble(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(FormatMicroseconds(7.2134e-6), "7.213");
  EXPECT_EQ(FormatMicroseconds(1.8434e-3), "1843");
  EXPECT_EQ(FormatPercent(0.9734), "97.3%");
  EXPECT_EQ(FormatShare(0.9734), "97%");
  EXPECT_EQ(FormatShare(0.0042), "0.4%");
  EXPECT_EQ(FormatShare(0), "0%");
  EXPECT_EQ(FormatShape(std::vector<int64_t>{64, 100, 3}), "64x100x3");
}

TEST(Figures, Bytes) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(4096), "4 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16 EiB");
}

TEST(Figures, TimesAndRates) {
  EXPECT_EQ(FormatTime(0), "0 µs");
  EXPECT_EQ(FormatTime(0.85), "850 ns");
  EXPECT_EQ(FormatTime(42.4), "42.4 µs");
  EXPECT_EQ(FormatTime(850), "850 µs");
  EXPECT_EQ(FormatTime(999.6), "1 ms");
  EXPECT_EQ(FormatTime(12'340), "12.3 ms");
  EXPECT_EQ(FormatTime(123'456), "123 ms");
  EXPECT_EQ(FormatTime(2'410'000), "2.41 s");
  EXPECT_EQ(FormatRate(3.4e9), "3.4 GB/s");
  EXPECT_EQ(FormatRate(999.6e9), "1 TB/s");
  EXPECT_EQ(FormatRate(120e6), "120 MB/s");
  EXPECT_EQ(FormatRate(500), "0.5 kB/s");
}

TEST(Figures, ColumnsLineUpByCharactersShown) {
  EXPECT_EQ(Columns({{"a", "µs", "words"}, {"bcd", "1000", ""}}), "a      µs  words\nbcd  1000\n");
  EXPECT_EQ(Columns({{"a", "b", "c"}, {"aa", "bb", "cc"}}, 2), "a   b    c\naa  bb  cc\n");
  EXPECT_EQ(Columns({{"a", "b"}}, 1, 4), "a        b\n");
  EXPECT_EQ(Columns({}), "");
}

TEST(Figures, PicturesAreWellFormedWhateverTheTextIs) {
  const std::string odd = "<a & \"b\">\x01";
  const auto elements = XmlReader::Read(svg::Document(
      30, 20, odd, ".s{fill:red}\n",
      svg::Rect(1.26, 2, 3, 4, "s", odd, 0.5) + svg::Line(0, 1, 2, 3, "g") + svg::Text(5, 6.04, "t", odd)));
  ASSERT_EQ(elements.size(), 7u);  // svg, its title and style, the rectangle and its tip, the line, the text
  EXPECT_EQ(elements[0].attributes.at("viewBox"), "0 0 30 20");
  for (const size_t i : {1, 4, 6}) EXPECT_EQ(elements[i].text, "<a & \"b\">?");
  EXPECT_EQ(elements[3].attributes.at("x"), "1.3");
  EXPECT_EQ(elements[3].number("opacity"), 0.5);
  EXPECT_EQ(elements[6].attributes.at("y"), "6");
}

}  // namespace
}  // namespace tilewire

#include "kernels/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/bench_testing.h"
#include "tests/unit/xml_check.h"

namespace tilewire::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tilewire::testing::XmlReader;

Report MakeReport() {
  Report report{.program = "bench 1.2.3", .machine = FakeMeter(1).facts(), .settings = {{"until", "quiet"}}};
  report.limits["device copy"] = 1e9;
  report.records.push_back(MakeRecord("transpose", "f32/64x64", 1000000, 2e-3, 1e-3));
  Record skipped;
  skipped.info = MakeCase("transpose", "huge, \"really\"");
  skipped.reason = "needs 9 TiB";
  report.records.push_back(skipped);
  report.records.push_back(MakeRecord("copies", "1 MiB <&>", 1000, 1e-6, 1e-6));
  return report;
}

Report SampleReport(int count) {
  Report report{.program = "bench"};
  for (int i = 1; i <= count; ++i) {
    const double seconds = 1.0 / i;  // shares of i ÷ 1000
    report.records.push_back(
        MakeRecord("permute", "case" + std::to_string(i) + ".", 1000000, seconds, seconds));
    report.records.back().info.sampled = true;
  }
  return report;
}

TEST(BenchText, TablesLineUp) {
  const std::string text = TextReport(MakeReport());
  EXPECT_THAT(text, HasSubstr("== transpose =="));
  EXPECT_THAT(text, HasSubstr("== copies =="));
  EXPECT_THAT(text, HasSubstr("skipped: transpose/huge, \"really\"/tilewire: needs 9 TiB"));
  std::istringstream lines(text.substr(text.find("== transpose ==")));
  std::string line, header, cold, hot;
  std::getline(lines, line);
  std::getline(lines, header);
  std::getline(lines, cold);
  std::getline(lines, hot);
  EXPECT_THAT(cold, HasSubstr("  50.0%"));
  EXPECT_THAT(cold, HasSubstr("  2000  "));
  EXPECT_THAT(hot, HasSubstr("3\u00d78"));
  EXPECT_THAT(hot, HasSubstr("  100.0%"));
  EXPECT_EQ(header.size(), cold.size());
  EXPECT_EQ(cold.size() + 1, hot.size()) << "the multiplication sign is one column but two bytes";
}

TEST(BenchText, SamplesAreShownByTheirDistribution) {
  const std::string text = TextReport(SampleReport(101));
  EXPECT_THAT(text,
              HasSubstr("101 random cases, share of the limit: min 0.1%, p5 0.6%, p25 2.6%, median 5.1%, p75 "
                        "7.6%, max 10.1%"));
  EXPECT_THAT(text, HasSubstr("case10."));
  EXPECT_THAT(text, Not(HasSubstr("case11.")));
}

TEST(BenchJson, ParsesBackToTheSameNumbers) {
  const Report report = MakeReport();
  const auto json = nlohmann::json::parse(JsonReport(report));
  EXPECT_EQ(json["program"], "bench 1.2.3");
  EXPECT_EQ(json["machine"]["gpu"], "Fake <&> \"GPU\"");
  EXPECT_EQ(json["limits_bytes_per_s"]["device copy"], 1e9);
  ASSERT_EQ(json["results"].size(), 3U);
  const auto& first = json["results"][0];
  EXPECT_EQ(first["name"], "f32/64x64");
  EXPECT_EQ(first["outcome"], "measured");
  EXPECT_EQ(first["cold"]["median_s"], 2e-3);
  EXPECT_EQ(first["hot"]["batch"], 8);
  EXPECT_EQ(first["hot"]["share_of_limit"], 1.0);
  EXPECT_EQ(json["results"][1]["reason"], "needs 9 TiB");
  EXPECT_FALSE(json["results"][1].contains("cold"));
}

TEST(BenchJson, ForeignBytesDoNotEndIt) {
  Report report = MakeReport();
  report.machine = {{"gpu", "bad \xff name"}};
  EXPECT_NO_THROW(static_cast<void>(nlohmann::json::parse(JsonReport(report))));
}

/// Fields of an RFC 4180 line.
std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

TEST(BenchCsv, EveryLineHasTheHeadersFields) {
  std::istringstream lines(CsvReport(MakeReport()));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(line.ends_with('\r'));
    rows.push_back(Fields(line.substr(0, line.size() - 1)));
    EXPECT_EQ(rows.back().size(), rows.front().size()) << line;
  }
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0][5], "mode");
  EXPECT_EQ(rows[1][5], "cold");
  EXPECT_EQ(std::stod(rows[1][10]), 2e-3);
  EXPECT_EQ(rows[3][1], "huge, \"really\"");
  EXPECT_EQ(rows[3].back(), "needs 9 TiB");
}

TEST(BenchSvg, IsWellFormedAndFollowsThePage) {
  const std::string svg = SvgChart(MakeReport(), "copies");
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_NO_THROW(XmlReader::Read(svg));
  EXPECT_THAT(svg, HasSubstr("1 MiB &lt;&amp;&gt;"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr("Fake &lt;&amp;&gt; &quot;GPU&quot;"));
  EXPECT_THAT(svg, Not(HasSubstr("href"))) << "self-contained";
}

TEST(BenchSvg, BarsAreAsLongAsShares) {
  std::map<std::string, double> widths;
  for (const auto& element : XmlReader::Read(SvgChart(MakeReport(), "transpose")))
    if (element.name == "rect") widths[element.attributes.at("class")] = element.number("width");
  // 50% cold and 100% hot of an axis that ends at 100%, 520 px long.
  EXPECT_EQ(widths, (std::map<std::string, double>{{"cold ours", 260}, {"hot ours", 520}}));
}

TEST(BenchSvg, ManyBarsBecomeADistribution) {
  const std::string svg = SvgChart(SampleReport(201), "permute");
  EXPECT_NO_THROW(XmlReader::Read(svg));
  EXPECT_THAT(svg, HasSubstr("50th percentile: 10.1%"));
}

TEST(BenchSvg, NothingMeasuredIsNoChart) {
  EXPECT_EQ(SvgChart(MakeReport(), "rmse"), "");
}

}  // namespace
}  // namespace tilewire::bench

#include <sstream>

#include "kernels/bench/report.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

using Row = std::vector<std::string>;

std::string ErrorText(const Check& check) {
  if (check.kind == Check::Kind::kExact) return "exact";
  if (check.kind == Check::Kind::kNothing) return "-";
  std::ostringstream text;
  text.precision(1);
  text << std::scientific << check.relative_error;
  return text.str();
}

std::string Gigabytes(double rate) {
  return rate > 0 ? FormatFixed(rate * 1e-9, 1) : "-";
}

Row MakeRow(const Record& record, const Measurement& measurement) {
  const Summary& seconds = measurement.seconds;
  const double share = record.Share(measurement);
  const bool completion = measurement.mode == Mode::kCompletion;
  return {record.info.name,
          record.info.implementation,
          std::string(Name(measurement.mode)),
          record.info.bytes > 0 ? FormatBytes(record.info.bytes) : "-",
          std::to_string(seconds.runs) +
              (measurement.batch > 1 ? "\u00d7" + std::to_string(measurement.batch) : ""),
          std::string(Name(measurement.stop)),
          FormatMicroseconds(seconds.min),
          FormatMicroseconds(seconds.median),
          FormatMicroseconds(seconds.mean),
          FormatMicroseconds(seconds.max),
          FormatPercent(seconds.spread()),
          completion ? "-" : Gigabytes(record.Rate(measurement)),
          share > 0 && !completion ? FormatPercent(share) : "-",
          ErrorText(record.check)};
}

void WriteDistribution(const Report& report, const std::string& group, std::ostream& out) {
  const std::vector<double> shares = SampledShares(report, group);
  if (shares.empty()) return;
  out << shares.size() << " random cases, share of the limit: min " << FormatPercent(shares.front());
  for (const int percent : {5, 25, 50, 75}) {
    out << ", " << (percent == 50 ? "median" : "p" + std::to_string(percent)) << ' '
        << FormatPercent(Quantile(shares, percent / 100.0));
  }
  out << ", max " << FormatPercent(shares.back());
  const bool positive = shares.front() > 0;
  if (positive) out << ", geometric mean " << FormatPercent(GeometricMean(shares));
  out << "\nThe ten slowest of them:\n";
}

/// Sampled cases that the table leaves out: all but the slowest ten.
bool IsLeftOut(const Report& report, const Record& record) {
  if (!record.info.sampled) return false;
  const std::vector<double> shares = SampledShares(report, record.info.group);
  const Measurement* headline = record.Headline();
  return shares.size() > 10 && headline != nullptr && record.Share(*headline) > shares[9];
}

void WriteGroup(const Report& report, const std::string& group, std::ostream& out) {
  out << "\n== " << group << " ==\n";
  WriteDistribution(report, group, out);
  std::vector<Row> rows = {{"case", "by", "mode", "bytes", "runs", "until", "min us", "median us", "mean us",
                            "max us", "spread", "GB/s", "limit", "error"}};
  for (const Record& record : report.records) {
    if (record.info.group != group || IsLeftOut(report, record)) continue;
    for (const Measurement& measurement : record.measurements) {
      if (!record.info.sampled || &measurement == record.Headline())
        rows.push_back(MakeRow(record, measurement));
    }
  }
  if (rows.size() > 1) out << Columns(rows, 3);
  for (const Record& record : report.records) {
    if (record.info.group != group || record.outcome == Outcome::kMeasured) continue;
    out << Name(record.outcome) << ": " << FullName(record.info) << ": " << record.reason << '\n';
  }
}

}  // namespace

std::string TextReport(const Report& report) {
  std::ostringstream out;
  out << report.program << '\n';
  std::vector<Row> facts;
  for (const auto& [name, value] : report.machine) facts.push_back({name, value});
  for (const auto& [name, value] : report.settings) facts.push_back({name, value});
  for (const auto& [name, rate] : report.limits)
    facts.push_back({"limit: " + name, Gigabytes(rate) + " GB/s"});
  out << Columns(facts, 2);
  for (const std::string& group : Groups(report)) WriteGroup(report, group, out);
  return out.str();
}

}  // namespace tilewire::bench

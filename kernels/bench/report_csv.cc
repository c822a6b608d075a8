#include <sstream>

#include "kernels/bench/report.h"

namespace tilewire::bench {
namespace {

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void WriteNames(const Record& record, std::ostream& out) {
  const CaseInfo& info = record.info;
  out << Quoted(info.group) << ',' << Quoted(info.name) << ',' << Quoted(info.implementation) << ','
      << Name(record.outcome) << ',' << info.bytes << ',';
}

void WriteError(const Check& check, std::ostream& out) {
  if (check.kind == Check::Kind::kExact) out << "exact";
  if (check.kind == Check::Kind::kRelative) out << check.relative_error;
}

}  // namespace

std::string CsvReport(const Report& report) {
  std::ostringstream out;
  out.precision(9);
  out << "group,name,implementation,outcome,bytes,mode,runs,batch,stopped_by,min_s,median_s,mean_s,max_s,"
         "spread,"
         "bytes_per_s,share_of_limit,error,reason\r\n";
  for (const Record& record : report.records) {
    for (const Measurement& measurement : record.measurements) {
      const Summary& seconds = measurement.seconds;
      WriteNames(record, out);
      out << Name(measurement.mode) << ',' << seconds.runs << ',' << measurement.batch << ','
          << Name(measurement.stop) << ',' << seconds.min << ',' << seconds.median << ',' << seconds.mean
          << ',' << seconds.max << ',' << seconds.spread() << ',';
      const bool has_rate = measurement.mode != Mode::kCompletion && record.Rate(measurement) > 0;
      if (has_rate) out << record.Rate(measurement);
      out << ',';
      if (has_rate && record.limit_rate > 0) out << record.Share(measurement);
      out << ',';
      WriteError(record.check, out);
      out << ",\r\n";
    }
    if (record.measurements.empty()) {
      WriteNames(record, out);
      out << ",,,,,,,,,,,," << Quoted(record.reason) << "\r\n";
    }
  }
  return out.str();
}

}  // namespace tilewire::bench

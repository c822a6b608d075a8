// Writers of a Report. Pure: text in memory; main.cc puts it into files.
#pragma once

#include <string>

#include "kernels/bench/record.h"

namespace tilewire::bench {

/// Aligned tables for people, one a group, and what was skipped or failed, by name.
std::string TextReport(const Report& report);

/// One JSON object: program, machine, settings, limits (bytes a second) and results (seconds; null where
/// unknown). README.md names the fields.
std::string JsonReport(const Report& report);

/// One line a case and mode, RFC 4180, with a header line.
std::string CsvReport(const Report& report);

/// One self-contained SVG: the group's cases as bars, as shares of their limits; with more than 60 bars their
/// distribution. Readable on light and dark pages. Empty where nothing of the group was measured against a
/// limit.
std::string SvgChart(const Report& report, const std::string& group);

}  // namespace tilewire::bench

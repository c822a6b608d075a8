// The command line.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/bench/bench.h"
#include "kernels/bench/runner.h"

namespace tilewire::bench {

struct Options {
  std::string filter;  ///< regular expression over FullName(); empty: everything
  bool list = false;
  std::string json, csv, plot;  ///< file, file, folder; empty: not written
  int device = 0;
  int64_t max_bytes = 0;  ///< a GPU case may allocate; 0: 90% of what is free
  RunSettings run;
  CaseOptions cases;
};

/// What to do after parsing: go on, or leave with a code (0 after --help and --version, 2 after bad usage,
/// having printed what is to be said).
struct Parsed {
  Options options;
  bool leave = false;
  int exit_code = 0;
};
Parsed ParseCommandLine(int argc, const char* const* argv);

}  // namespace tilewire::bench

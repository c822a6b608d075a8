// The table of flags: one place says each flag's name, default, range, meaning and how it is stored. The
// command line, the environment, the configuration file, --help and the README's table all follow from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/status.h"
#include "server/ops/config.h"

namespace tilewire::ops {

struct Flag {
  std::string name;          ///< without dashes
  std::string placeholder;   ///< of the value in --help; empty: a switch
  std::string default_text;  ///< as people read it
  std::string allowed;       ///< as people read it
  std::string help;          ///< one sentence, with units
  bool repeatable = false;   ///< each value is added; else a second one is an error
  std::function<Status(Config* config, std::string_view value)> store;

  std::string env() const;  ///< "TILEWIRE_BLOCK_BYTES"
};

/// All flags of `tilewired` but --config, --help and --version, in the order of --help. Thread-safe.
const std::vector<Flag>& Flags();

/// Those of each caller's share, for Flags().
void AddShareFlags(std::vector<Flag>* flags);

/// What single flags cannot say: relations between them.
Status CheckConfig(const Config& config);

}  // namespace tilewire::ops

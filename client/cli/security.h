// How a program connects: TLS, and who it is. The same options for all programs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "client/cpp/client.h"

namespace tilewire::cli {

/// Words of the command line and of the environment: paths of files.
struct SecurityOptions {
  std::string ca;  ///< "system": the authorities of this machine; empty: clear text
  std::string certificate, key, token_file;
  bool insecure = false;
};

/// Adds --tls-ca, --tls-cert, --tls-key, --token-file and --insecure, with their variables. `options`
/// outlives the command line.
void AddSecurity(CLI::App* app, SecurityOptions* options);

/// Reads the files. INVALID_ARGUMENT, naming option and file, where one cannot be read or is not what it
/// should be, and where an option lacks another.
Result<client::ConnectOptions> ReadSecurity(const SecurityOptions& options);

}  // namespace tilewire::cli

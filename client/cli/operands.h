// Operands of the command line: files, and arrays that the server keeps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cpp/source.h"

namespace tilewire::cli {

/// "array:ID" as a resident array, anything else as the .npy file of that name ("./array:x" is one too).
/// Errors: as ArraySource::OpenNpy, or INVALID_ARGUMENT for an id that no server gives out.
Result<client::ArraySource> OpenOperand(const std::string& text);

/// "ID" or "array:ID": the id. INVALID_ARGUMENT where it is empty or not of visible ASCII characters.
Result<std::string> ParseArrayId(const std::string& text);

/// With --via region: copies operands that are files into memory shared with the server, and makes them that.
/// What is returned keeps them.
Result<client::SharedRegion> ShareOperands(const Globals& globals,
                                           std::vector<client::ArraySource>* operands);

/// Asks the server for dtype and shape of operands where they are not known. `options.timeout` goes down by
/// the time that took.
Status LearnSpecs(client::Client* client, std::vector<client::ArraySource>* operands,
                  client::CallOptions* options);

}  // namespace tilewire::cli

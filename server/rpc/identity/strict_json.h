// JSON from files and tokens, without what two readers could read differently. No gRPC here.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "kernels/array/status.h"

namespace tilewire::rpc {

/// INVALID_ARGUMENT where `text` is no JSON (with the line), or has a key twice in one object (with the key),
/// of which the library would silently keep the last.
Result<nlohmann::json> ParseStrictJson(std::string_view text);

}  // namespace tilewire::rpc

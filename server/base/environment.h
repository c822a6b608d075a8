// Environment variables of Tilewire's programs: one list for all of them, so that each knows those of the
// others and tells of a misspelt one, which nobody would read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewire {

/// Those that people set: of the server (TILEWIRE_CONFIG and one a flag) and of the clients.
std::span<const std::string_view> KnownVariables();

struct UnknownVariable {
  std::string name;
  std::string_view nearest;  ///< of KnownVariables, by letters to change
};

/// The variables among `entries` ("NAME=value" each, then null, as `environ`) that begin with TILEWIRE_ and
/// that no program of ours reads, in their order. An empty one counts as not set. Call before threads start.
std::vector<UnknownVariable> UnknownVariables(const char* const* entries);

}  // namespace tilewire

// Results as numbers: what is printed of those that go to no file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/cpp/operations.h"
#include "kernels/array/shape.h"

namespace tilewire::cli {

/// A result, row-major: bytes as many as `spec` says.
struct Values {
  ArraySpec spec;
  std::vector<uint8_t> bytes;
};

/// The shortest texts that read back to the same number; "nan", "inf", "-inf"; of bool 0 and 1.
/// UNIMPLEMENTED for complex dtypes.
Result<std::vector<std::string>> ValueTexts(const Values& values);

/// A result and what it is called: nothing where it is the only one.
struct NamedValues {
  std::string name;
  Values values;
};

/// Results with their names, `attributes` being all that were asked for, then what is derived of them where a
/// number was given for that.
std::vector<NamedValues> Named(const client::OperationInfo& operation, const Attributes& attributes,
                               std::vector<Values> results, std::optional<double> given);

/// What is printed: a value a line, or a line "name value" a result, of several values one after the other.
/// Errors: as ValueTexts.
Result<std::string> TextOf(std::span<const NamedValues> results);
/// The same as a list, or as an object of numbers, or lists where a result has axes. What JSON has no number
/// for is a string.
Result<nlohmann::ordered_json> JsonOf(std::span<const NamedValues> results);

/// The most that a value may be.
struct Limit {
  std::string name;
  double most;
};
/// The results of which a value is above its limit, or NaN: "rmse is 0.5; allowed: 0.25 at most".
std::vector<std::string> AboveLimits(std::span<const NamedValues> results, std::span<const Limit> limits);

}  // namespace tilewire::cli

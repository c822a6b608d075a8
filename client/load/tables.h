// Results as text for the terminal.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "client/load/compare.h"

namespace tilewire::load {

/// A finished result, kind run or study.
std::string ResultText(const nlohmann::ordered_json& result);
/// The verdict of a comparison.
std::string ComparisonText(const Comparison& comparison);
/// Measured limits, one a line.
std::string CeilingsText(const nlohmann::ordered_json& ceilings);

}  // namespace tilewire::load

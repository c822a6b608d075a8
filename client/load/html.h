#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tilewire::load {

/// The results of a load test as one self-contained HTML file, UTF-8: style, script and the result itself are
/// inside, and nothing is fetched when it is opened (a Content-Security-Policy in the page forbids it).
///
/// `result` is a run or a study as client/load/RESULTS.md describes it. Nothing is refused: parts that are
/// absent or empty are left out of the page, and fields that it does not know only travel along with the
/// download. Strings in `result` cannot become markup, whatever they hold; bytes that are not UTF-8 become
/// U+FFFD.
///
/// Needs about three times the size of the result in memory. Thread-safe.
std::string HtmlPage(const nlohmann::json& result);

}  // namespace tilewire::load

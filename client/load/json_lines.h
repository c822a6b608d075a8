// On which line of a JSON text a value stands: what the parser knows and does not tell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tilewire::load {

/// Lines of the members and elements of a JSON text.
class JsonLines {
 public:
  /// `text` is valid JSON; of anything else some lines are missing.
  explicit JsonLines(std::string_view text);

  /// Line of the value at "operations[1].dtype", from 1; of the nearest one around it where there is none.
  int LineOf(std::string path) const;
  /// A member that its object has twice, by its path; none where there is none.
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  class Scanner;
  std::map<std::string, int> lines_;
  std::optional<std::string> repeated_;
};

}  // namespace tilewire::load

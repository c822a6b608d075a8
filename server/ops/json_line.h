// A JSON object in one line, put together directly: a tree of values costs a small call too much.
#pragma once

#include <concepts>
#include <string_view>

#include "server/ops/line_text.h"

namespace tilewire::ops {

/// Members in the order in which they are added. ASCII alone: other characters are escaped, what is not UTF-8
/// becomes U+FFFD. Numbers that are none (NaN, infinite) are null.
class JsonLine {
 public:
  /// Appends to `line`, which outlives this.
  explicit JsonLine(LineText* line) : line_(line) {}
  /// `name` is ours: letters and underscores, and not there yet.
  template <typename T>
  JsonLine& Add(std::string_view name, const T& value) {
    AddName(name);
    if constexpr (std::same_as<T, bool>) {
      *line_ += value ? "true" : "false";
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      AddText(value);
    } else if constexpr (std::floating_point<T>) {
      AddNumber(value);
    } else {
      static_assert(std::integral<T> && !std::same_as<T, char>);
      *line_ += value;
    }
    return *this;
  }
  /// Ends the object. Nothing is added after it.
  void End() { *line_ += empty_ ? "{}" : "}"; }

 private:
  void AddName(std::string_view name);
  void AddText(std::string_view text);
  void AddNumber(double number);

  LineText* const line_;
  bool empty_ = true;
};

}  // namespace tilewire::ops

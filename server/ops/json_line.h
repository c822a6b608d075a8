// A JSON object in one line, put together directly: a tree of values costs a small call too much.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tilewire::ops {

/// Appends what a clock in nanoseconds says in microseconds, or another number from 0 to 10^6 that has no
/// more than three decimals, as those digits that tell it from all others; false where it is none. Far sooner
/// than by std::to_chars.
bool AppendThousandths(double number, std::string* out);

/// Members in the order in which they are added. ASCII alone: other characters are escaped, what is not UTF-8
/// becomes U+FFFD. Numbers that are none (NaN, infinite) are null.
class JsonLine {
 public:
  /// `name` is ours: letters and underscores, and not there yet.
  template <typename T>
  JsonLine& Add(std::string_view name, const T& value) {
    AddName(name);
    if constexpr (std::same_as<T, bool>) {
      line_ += value ? "true" : "false";
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      AddText(value);
    } else if constexpr (std::floating_point<T>) {
      AddNumber(value);
    } else {
      static_assert(std::integral<T>);
      line_ += std::to_string(value);
    }
    return *this;
  }
  /// The object, without the end of the line. Nothing is added after it.
  std::string TakeText() {
    line_ += line_.empty() ? "{}" : "}";
    return std::move(line_);
  }

 private:
  void AddName(std::string_view name);
  void AddText(std::string_view text);
  void AddNumber(double number);

  std::string line_;
};

}  // namespace tilewire::ops

// A JSON object in one line, put together directly: a tree of values costs a small call too much.
#pragma once

#include <concepts>
#include <cstring>
#include <string_view>
#include <utility>

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
  [[gnu::always_inline]] JsonLine& Add(std::string_view name, const T& value) {
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
  /// The same for a text of ours that needs no look: letters, digits and what no format escapes (kPlainText).
  [[gnu::always_inline]] JsonLine& AddOurs(std::string_view name, std::string_view text) {
    AddName(name);
    AddPlain(text);
    return *this;
  }
  /// Members that another one has, as they are in its line: without braces. At least one.
  void AddMembers(std::string_view members) {
    char* const at = line_->Room(members.size() + 1);
    *at = std::exchange(empty_, false) ? '{' : ',';
    std::memcpy(at + 1, members.data(), members.size());
  }
  /// Ends the object. Nothing is added after it.
  void End() { *line_ += empty_ ? "{}" : "}"; }

 private:
  // Where the name is a literal these are a few stores: the compiler is told to see it, as each call to the
  // server is two such lines of some fifteen members.
  [[gnu::always_inline]] void AddName(std::string_view name) {
    char* at = line_->Room(name.size() + 4);
    *at++ = std::exchange(empty_, false) ? '{' : ',';
    *at++ = '"';
    std::memcpy(at, name.data(), name.size());
    std::memcpy(at + name.size(), "\":", 2);
  }
  [[gnu::always_inline]] void AddPlain(std::string_view text) {
    char* const at = line_->Room(text.size() + 2);
    *at = '"';
    if (!text.empty()) std::memcpy(at + 1, text.data(), text.size());
    at[text.size() + 1] = '"';
  }
  void AddText(std::string_view text);
  void AddNumber(double number);

  LineText* const line_;
  bool empty_ = true;
};

}  // namespace tilewire::ops

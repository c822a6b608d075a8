// Text of a log line while it is put together.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace tilewire::ops {

/// Grows at its end, a few instructions a piece: each piece of a std::string is a call into its library, and
/// every call to the server is a line of some thirty pieces. Itself it takes nothing from the heap for a
/// usual line.
class LineText {
 public:
  template <std::same_as<char> C>  // nothing that merely converts
  LineText& operator+=(C c) {
    text_.push_back(c);
    return *this;
  }
  LineText& operator+=(std::string_view more) {
    text_.append(more.data(), more.data() + more.size());
    return *this;
  }
  LineText& operator+=(const char* more) { return *this += std::string_view(more); }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) LineText& operator+=(T number) {
    const fmt::format_int digits(number);
    return *this += std::string_view(digits.data(), digits.size());
  }
  /// Room for so many characters more, which the caller writes.
  char* Room(size_t count) {
    text_.resize(text_.size() + count);
    return text_.data() + text_.size() - count;
  }

  size_t size() const { return text_.size(); }
  /// Until more is added.
  std::string_view view() const { return {text_.data(), text_.size()}; }

 private:
  static constexpr size_t kUsualBytes = 1000;
  fmt::basic_memory_buffer<char, kUsualBytes> text_;
};

/// Of each byte: whether it is printable ASCII that no format of ours escapes.
inline constexpr std::array<bool, 256> kPlainText = [] {
  std::array<bool, 256> plain{};
  for (size_t c = ' '; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

/// Appends what a clock in nanoseconds says in microseconds, or another number from 0 to 10^6 that has no
/// more than three decimals, as those digits that tell it from all others; false where it is none. Far sooner
/// than by std::to_chars.
bool AppendThousandths(double number, LineText* out);

}  // namespace tilewire::ops

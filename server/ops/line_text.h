// Text of a log line while it is put together.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace tilewire::ops {

/// Grows at its end, a few instructions a piece, without a call where the compiler knows its size: every call
/// to the server is a line of some thirty pieces, or two. Itself it takes nothing from the heap for a usual
/// line.
class LineText {
 public:
  LineText() = default;
  LineText(const LineText&) = delete;
  LineText& operator=(const LineText&) = delete;

  template <std::same_as<char> C>  // nothing that merely converts
  LineText& operator+=(C c) {
    *Room(1) = c;
    return *this;
  }
  LineText& operator+=(std::string_view more) {
    if (!more.empty()) std::memcpy(Room(more.size()), more.data(), more.size());
    return *this;
  }
  LineText& operator+=(const char* more) { return *this += std::string_view(more); }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) LineText& operator+=(T number) {
    const fmt::format_int digits(number);
    return *this += std::string_view(digits.data(), digits.size());
  }
  /// Room for so many characters more, which the caller writes before anything else is added.
  [[gnu::always_inline]] char* Room(size_t count) {
    if (count > room_ - size_) [[unlikely]]
      Grow(count);
    size_ += count;
    return text_ + size_ - count;
  }

  size_t size() const { return size_; }
  /// Until more is added.
  std::string_view view() const { return {text_, size_}; }

 private:
  static constexpr size_t kUsualBytes = 1000;
  void Grow(size_t count);

  std::array<char, kUsualBytes> usual_;  // what nobody wrote nobody reads
  char* text_ = usual_.data();
  size_t size_ = 0, room_ = kUsualBytes;
  std::unique_ptr<char[]> more_;
};

/// Of each byte: whether it is printable ASCII that no format of ours escapes.
inline constexpr std::array<bool, 256> kPlainText = [] {
  std::array<bool, 256> plain{};
  for (size_t c = ' '; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

/// Whether all of it is.
bool IsPlainText(std::string_view text);

/// Appends what a clock in nanoseconds says in microseconds, or another number from 0 to 10^6 that has no
/// more than three decimals, as those digits that tell it from all others; false where it is none. Far sooner
/// than by std::to_chars.
bool AppendThousandths(double number, LineText* out);

}  // namespace tilewire::ops

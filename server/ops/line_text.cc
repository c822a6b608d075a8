#include "server/ops/line_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tilewire::ops {
namespace {

using Word = uint64_t;

constexpr Word Each(unsigned char byte) {
  return ~Word{0} / 0xff * byte;
}

/// Non-zero where one of its eight bytes is not plain. A byte is below n where subtracting n from each
/// borrows and it was no such large one itself; it is c where it is below 1 once c was taken out (S. E.
/// Anderson, Bit Twiddling Hacks, "hasless").
constexpr Word NotPlain(Word word) {
  constexpr auto kBelow = [](Word w, unsigned char n) { return (w - Each(n)) & ~w; };
  return (kBelow(word, ' ') | kBelow(word ^ Each('"'), 1) | kBelow(word ^ Each('\\'), 1) |
          kBelow(word ^ Each(0x7f), 1) | word) &
         Each(0x80);
}

}  // namespace

void LineText::Grow(size_t count) {
  room_ = 2 * (size_ + count);
  auto more = std::make_unique_for_overwrite<char[]>(room_);
  std::memcpy(more.get(), text_, size_);
  more_ = std::move(more);
  text_ = more_.get();
}

bool IsPlainText(std::string_view text) {
  if (text.size() < sizeof(Word))
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return kPlainText[static_cast<unsigned char>(c)]; });
  Word word = 0, bad = 0;
  const auto look = [&](size_t at) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    bad |= NotPlain(word);
  };
  const size_t last = text.size() - sizeof(Word);
  for (size_t at = 0; at < last; at += sizeof(Word)) look(at);
  look(last);  // some twice, rather than one by one
  return bad == 0;
}

bool AppendThousandths(double number, LineText* out) {
  constexpr double kMost = 1e6;
  constexpr uint32_t kScale = 1000;
  if (std::signbit(number) || !(number <= kMost)) return false;
  const auto thousandths = static_cast<uint32_t>(std::lround(number * kScale));
  // Both are the double nearest to a decimal of ten digits, which no other such decimal has.
  if (static_cast<double>(thousandths) / kScale != number) return false;
  std::array<char, 12> buffer{};
  char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), thousandths / kScale).ptr;
  if (const uint32_t rest = thousandths % kScale; rest > 0) {
    *end++ = '.';
    for (const uint32_t digit : {rest / 100, rest / 10 % 10, rest % 10})
      *end++ = static_cast<char>('0' + digit);
    while (end[-1] == '0') --end;
  }
  *out += std::string_view(buffer.data(), end);
  return true;
}

}  // namespace tilewire::ops

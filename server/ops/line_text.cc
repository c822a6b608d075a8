#include "server/ops/line_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>

namespace tilewire::ops {

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

#include "server/ops/json_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewire::ops {
namespace {

constexpr size_t kUsualBytes = 512;  // of a line

/// Of each byte: whether it stands for itself.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = ' '; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

}  // namespace

bool AppendThousandths(double number, std::string* out) {
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
  out->append(buffer.data(), end);
  return true;
}

void JsonLine::AddName(std::string_view name) {
  if (line_.empty()) line_.reserve(kUsualBytes);
  line_ += line_.empty() ? '{' : ',';
  line_ += '"';
  line_ += name;
  line_ += "\":";
}

void JsonLine::AddText(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return kPlain[static_cast<unsigned char>(c)]; })) {
    line_ += '"';
    line_ += text;
    line_ += '"';
  } else {
    line_ += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
}

void JsonLine::AddNumber(double number) {
  if (!std::isfinite(number)) {
    line_ += "null";
    return;
  }
  const size_t begin = line_.size();
  if (AppendThousandths(number, &line_)) {
    if (line_.find('.', begin) == line_.npos) line_ += ".0";
    return;
  }
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  const std::string_view digits(buffer.data(), end.ptr);
  line_.append(digits);
  if (digits.find_first_of(".e") == digits.npos)
    line_ += ".0";  // readers that tell them apart see no integer
}

}  // namespace tilewire::ops

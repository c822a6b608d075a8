#include "server/ops/json_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewire::ops {
namespace {

constexpr size_t kUsualBytes = 512;  // of a line

bool IsPlain(char c) {
  return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

}  // namespace

void JsonLine::AddName(std::string_view name) {
  if (line_.empty()) line_.reserve(kUsualBytes);
  line_ += line_.empty() ? "{\"" : ",\"";
  line_.append(name).append("\":");
}

void JsonLine::AddText(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) {
    line_.append("\"").append(text).append("\"");
  } else {
    line_ += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
}

void JsonLine::AddNumber(double number) {
  if (!std::isfinite(number)) {
    line_ += "null";
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

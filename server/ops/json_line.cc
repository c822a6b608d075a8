#include "server/ops/json_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tilewire::ops {

void JsonLine::AddName(std::string_view name) {
  constexpr std::string_view kEnd = "\":";
  char* at = line_->Room(2 + name.size() + kEnd.size());
  *at++ = std::exchange(empty_, false) ? '{' : ',';
  *at++ = '"';
  at = std::copy(name.begin(), name.end(), at);
  std::copy(kEnd.begin(), kEnd.end(), at);
}

void JsonLine::AddText(std::string_view text) {
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return kPlainText[static_cast<unsigned char>(c)]; })) {
    *line_ += '"';
    *line_ += text;
    *line_ += '"';
  } else {
    *line_ += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
}

void JsonLine::AddNumber(double number) {
  if (!std::isfinite(number)) {
    *line_ += "null";
    return;
  }
  const size_t begin = line_->size();
  if (AppendThousandths(number, line_)) {
    if (line_->view().find('.', begin) == std::string_view::npos) *line_ += ".0";
    return;
  }
  // Beyond, people read exponents better; and those between have room in the buffer.
  constexpr double kLeastFixed = 1e-4, kMostFixed = 1e15;
  const double size = std::abs(number);
  const auto form = size == 0 || (size < kMostFixed && size >= kLeastFixed) ? std::chars_format::fixed
                                                                            : std::chars_format::scientific;
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, form);
  const std::string_view digits(buffer.data(), end.ptr);
  *line_ += digits;
  if (digits.find_first_of(".e") == digits.npos)
    *line_ += ".0";  // readers that tell them apart see no integer
}

}  // namespace tilewire::ops

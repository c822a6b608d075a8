#include "server/ops/json_line.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewire::ops {

void JsonLine::AddText(std::string_view text) {
  if (IsPlainText(text)) {
    AddPlain(text);
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

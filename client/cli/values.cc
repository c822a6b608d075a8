#include "client/cli/values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/figures/text.h"

namespace tilewire::cli {
namespace {

using nlohmann::ordered_json;

/// Element `index` as a T.
template <typename T>
T At(const Values& values, size_t index) {
  T value;
  std::memcpy(&value, values.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float magnitude = exponent == 31  ? (mantissa == 0 ? INFINITY : NAN)
                          : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

/// The shortest text of a float, which is shorter than that of the same double.
std::string FloatText(float value) {
  if (!std::isfinite(value)) return FormatDouble(value);
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

std::string TextAt(const Values& values, size_t index) {
  switch (values.spec.dtype) {
    case DType::kBool:
    case DType::kU8:
      return std::to_string(At<uint8_t>(values, index));
    case DType::kI8:
      return std::to_string(At<int8_t>(values, index));
    case DType::kI16:
      return std::to_string(At<int16_t>(values, index));
    case DType::kU16:
      return std::to_string(At<uint16_t>(values, index));
    case DType::kI32:
      return std::to_string(At<int32_t>(values, index));
    case DType::kU32:
      return std::to_string(At<uint32_t>(values, index));
    case DType::kI64:
      return std::to_string(At<int64_t>(values, index));
    case DType::kU64:
      return std::to_string(At<uint64_t>(values, index));
    case DType::kF16:
      return FloatText(FromHalf(At<uint16_t>(values, index)));
    case DType::kBF16:
      return FloatText(std::bit_cast<float>(uint32_t{At<uint16_t>(values, index)} << 16));
    case DType::kF32:
      return FloatText(At<float>(values, index));
    case DType::kF64:
      return FormatDouble(At<double>(values, index));
    case DType::kC64:
    case DType::kC128:
      break;
  }
  return "";
}

/// The same as a number: that of its text, rounded once. Of no complex dtype.
double NumberAt(const Values& values, size_t index) {
  if (values.spec.dtype == DType::kF64) return At<double>(values, index);
  return std::strtod(TextAt(values, index).c_str(), nullptr);
}

/// A number of JSON, or a word where JSON has no number. Doubles are not our shortest text: nlohmann prints
/// numbers itself, also so that they read back the same. ("-0" would be read as an integer, which has no such
/// zero.)
ordered_json JsonNumber(const Values& values, size_t index, const std::string& text) {
  if (text == "-0") return -0.0;
  if (values.spec.dtype == DType::kF64 && std::isfinite(At<double>(values, index)))
    return At<double>(values, index);
  const ordered_json number = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return number.is_number() ? number : ordered_json(text);
}

Result<ordered_json> JsonList(const Values& values) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ValueTexts(values));
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < texts.size(); ++i) list.push_back(JsonNumber(values, i, texts[i]));
  return list;
}

}  // namespace

Result<std::vector<std::string>> ValueTexts(const Values& values) {
  if (values.spec.dtype == DType::kC64 || values.spec.dtype == DType::kC128)
    return Fail(Status(Code::kUnimplemented, "DTYPE", "complex values are not printed"));
  std::vector<std::string> texts;
  for (size_t i = 0; i < static_cast<size_t>(values.spec.shape.elements()); ++i)
    texts.push_back(TextAt(values, i));
  return texts;
}

std::vector<NamedValues> Named(const client::OperationInfo& operation, const Attributes& attributes,
                               std::vector<Values> results, std::optional<double> given) {
  std::vector<std::string> names;
  if (operation.result_names != nullptr) names = operation.result_names(attributes);
  names.resize(results.size());
  std::vector<NamedValues> named;
  for (size_t k = 0; k < results.size(); ++k) named.push_back({names[k], std::move(results[k])});
  if (!given) return named;
  for (const client::Derived& derived : operation.derived) {
    const auto of = std::ranges::find(named, derived.of, &NamedValues::name);
    if (of == named.end()) continue;
    Values values{{DType::kF64, of->values.spec.shape}, {}};
    values.bytes.resize(static_cast<size_t>(values.spec.bytes()));
    for (size_t i = 0; i < static_cast<size_t>(values.spec.shape.elements()); ++i) {
      const double value = derived.make(NumberAt(of->values, i), *given);
      std::memcpy(values.bytes.data() + i * sizeof(value), &value, sizeof(value));
    }
    named.push_back({std::string(derived.name), std::move(values)});
  }
  return named;
}

Result<std::string> TextOf(std::span<const NamedValues> results) {
  std::string text;
  for (const auto& [name, values] : results) {
    TILEWIRE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ValueTexts(values));
    text += name;
    for (const std::string& value : texts) text += name.empty() ? value + "\n" : " " + value;
    if (!name.empty()) text += "\n";
  }
  return text;
}

Result<ordered_json> JsonOf(std::span<const NamedValues> results) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, values] : results) {
    TILEWIRE_ASSIGN_OR_RETURN(ordered_json list, JsonList(values));
    if (name.empty()) return list;
    json[name] = values.spec.shape.rank() == 0 ? list[0] : list;
  }
  return json;
}

std::vector<std::string> AboveLimits(std::span<const NamedValues> results, std::span<const Limit> limits) {
  std::vector<std::string> above;
  for (const auto& [name, most] : limits) {
    const auto result = std::ranges::find(results, name, &NamedValues::name);
    if (result == results.end()) continue;
    for (size_t i = 0; i < static_cast<size_t>(result->values.spec.shape.elements()); ++i) {
      if (NumberAt(result->values, i) <= most) continue;  // NaN is not
      above.push_back(name + " is " + TextAt(result->values, i) + "; allowed: " + FormatDouble(most) +
                      " at most");
      break;
    }
  }
  return above;
}

}  // namespace tilewire::cli

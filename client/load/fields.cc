#include "client/load/fields.h"

#include <algorithm>

#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

std::string Range(const std::string& what, double least, double most) {
  return what + " from " + FormatDouble(least) + " to " + FormatDouble(most);
}

std::string Short(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true);
  return text.size() > 80 ? text.substr(0, 77) + "..." : text;
}

}  // namespace

void Complaints::Add(const std::string& path, const std::string& value, const std::string& allowed) {
  if (!status_.ok()) return;
  const std::string where = source_ + ":" + std::to_string(lines_->LineOf(path)) + ": ";
  const std::string what = path.empty() ? "the file" : path;
  status_ = Status({.code = Code::kInvalidArgument,
                    .reason = "SCENARIO",
                    .message = where + what + " is " + value + "; allowed: " + allowed,
                    .field = path,
                    .value = value,
                    .allowed = allowed});
}

Fields::Fields(const Json& object, std::string path, Complaints* complaints)
    : path_(std::move(path)), complaints_(complaints) {
  if (object.is_object()) {
    object_ = &object;
  } else {
    complaints_->Add(path_, Short(object), "an object {…}");
  }
}

const Fields::Json* Fields::Find(const std::string& key, bool required) {
  known_.insert(key);
  if (Has(key)) return &object_->at(key);
  if (required) complaints_->Add(PathOf(key), "absent", "it is required");
  return nullptr;
}

void Fields::Wrong(const std::string& key, const std::string& allowed) {
  complaints_->Add(PathOf(key), Has(key) ? Short(object_->at(key)) : "absent", allowed);
}

double Fields::Number(const std::string& key, std::optional<double> absent, double least, double most) {
  const Json* value = Find(key, !absent);
  if (value == nullptr) return absent.value_or(least);
  if (value->is_number() && std::isfinite(value->get<double>()) && value->get<double>() >= least &&
      value->get<double>() <= most)
    return value->get<double>();
  Wrong(key, Range("a number", least, most));
  return least;
}

uint64_t Fields::Integer(const std::string& key, std::optional<uint64_t> absent, uint64_t least,
                         uint64_t most) {
  const Json* value = Find(key, !absent);
  if (value == nullptr) return absent.value_or(least);
  if (value->is_number_unsigned() && value->get<uint64_t>() >= least && value->get<uint64_t>() <= most)
    return value->get<uint64_t>();
  Wrong(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

std::string Fields::Text(const std::string& key, const std::optional<std::string>& absent) {
  const Json* value = Find(key, !absent);
  if (value == nullptr) return absent.value_or("");
  if (value->is_string() && value->get<std::string>().size() <= 200) return value->get<std::string>();
  Wrong(key, "text in quotes, at most 200 bytes");
  return "";
}

std::string Fields::Word(const std::string& key, const std::optional<std::string>& absent,
                         const std::vector<std::string>& words) {
  const Json* value = Find(key, !absent);
  if (value == nullptr) return absent.value_or(words.front());
  for (const std::string& word : words)
    if (value->is_string() && value->get<std::string>() == word) return word;
  std::string allowed;
  for (const std::string& word : words) allowed += (allowed.empty() ? "" : ", ") + word;
  Wrong(key, allowed);
  return words.front();
}

std::vector<std::string> Fields::Words(const std::string& key, const std::vector<std::string>& words) {
  const Json* value = Find(key, false);
  std::vector<std::string> found;
  if (value == nullptr) return found;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    const std::string word = (*value)[i].is_string() ? (*value)[i].get<std::string>() : "";
    good = std::ranges::find(words, word) != words.end() && std::ranges::find(found, word) == found.end();
    found.push_back(word);
  }
  if (good) return found;
  std::string allowed;
  for (const std::string& word : words) allowed += (allowed.empty() ? "" : ", ") + word;
  Wrong(key, "a list of these, each once: " + allowed);
  return {};
}

std::vector<int64_t> Fields::Integers(const std::string& key, bool required) {
  const Json* value = Find(key, required);
  std::vector<int64_t> numbers;
  if (value == nullptr) return numbers;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    const Json& number = (*value)[i];
    good = number.is_number_integer() &&
           (!number.is_number_unsigned() || number.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (good) numbers.push_back(number.get<int64_t>());
  }
  if (good) return numbers;
  Wrong(key, "a list of whole numbers such as [64, 128]");
  return {};
}

const Fields::Json* Fields::Object(const std::string& key, bool required) {
  const Json* value = Find(key, required);
  if (value == nullptr || value->is_object()) return value;
  Wrong(key, "an object {…}");
  return nullptr;
}

const Fields::Json* Fields::List(const std::string& key) {
  const Json* value = Find(key, true);
  if (value == nullptr || (value->is_array() && !value->empty() && value->size() <= 64)) return value;
  Wrong(key, "a list […] of 1 to 64 elements");
  return nullptr;
}

void Fields::Done() {
  if (object_ == nullptr) return;
  std::string allowed;
  for (const std::string& key : known_) allowed += (allowed.empty() ? "" : ", ") + key;
  for (const auto& [key, value] : object_->items())
    if (!known_.contains(key)) complaints_->Add(PathOf(key), "no field of this object", allowed);
}

}  // namespace tilewire::load

#include "kernels/operation/attributes.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tilewire {
namespace {

template <typename T>
const T& Get(const Attributes& attributes, std::string_view name) {
  const AttributeValue* const value = attributes.Find(name);
  assert(value != nullptr);
  return std::get<T>(*value);
}

}  // namespace

void Attributes::Set(std::string_view name, AttributeValue value) {
  const auto same = [name](const Entry& entry) { return entry.name == name; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found != entries_.end()) {
    found->value = std::move(value);
  } else {
    entries_.push_back({std::string(name), std::move(value)});
  }
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry.value;
  return nullptr;
}

int64_t Attributes::integer(std::string_view name) const {
  return Get<int64_t>(*this, name);
}

double Attributes::real(std::string_view name) const {
  return Get<double>(*this, name);
}

std::span<const int32_t> Attributes::integers(std::string_view name) const {
  return Get<std::vector<int32_t>>(*this, name);
}

}  // namespace tilewire

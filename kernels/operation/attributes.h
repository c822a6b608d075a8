// What an operation is asked to do beside its operands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tilewire {

/// Enums are integers.
using AttributeValue = std::variant<int64_t, double, std::vector<int32_t>>;

/// A handful of values by name. A value type; thread-compatible.
class Attributes {
 public:
  struct Entry {
    std::string name;
    AttributeValue value;
  };

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  /// Replaces what the name had.
  void Set(std::string_view name, AttributeValue value);
  /// Null where it has none.
  const AttributeValue* Find(std::string_view name) const;
  /// In the order in which they were set.
  std::span<const Entry> entries() const { return entries_; }

  // Of an attribute that is there and of that kind, as Descriptor::Make sees to.
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::span<const int32_t> integers(std::string_view name) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace tilewire

// Reads the members of JSON objects with checks; the first complaint is kept. Internal to the scenario
// parser.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/load/json_lines.h"
#include "kernels/array/status.h"

namespace tilewire::load {

/// What is wrong with a file, at first.
class Complaints {
 public:
  Complaints(std::string source, const JsonLines* lines) : source_(std::move(source)), lines_(lines) {}
  void Add(const std::string& path, const std::string& value, const std::string& allowed);
  const Status& status() const { return status_; }

 private:
  const std::string source_;
  const JsonLines* const lines_;
  Status status_;
};

/// The members of one object. Every getter returns the member, or the default where it is absent, or
/// something harmless after a complaint. `path` is "" for the file itself.
class Fields {
 public:
  using Json = nlohmann::json;

  Fields(const Json& object, std::string path, Complaints* complaints);

  bool Has(const std::string& key) const { return object_ != nullptr && object_->contains(key); }
  double Number(const std::string& key, std::optional<double> absent, double least, double most);
  uint64_t Integer(const std::string& key, std::optional<uint64_t> absent, uint64_t least, uint64_t most);
  std::string Text(const std::string& key, const std::optional<std::string>& absent);
  /// One of the words.
  std::string Word(const std::string& key, const std::optional<std::string>& absent,
                   const std::vector<std::string>& words);
  /// Any of the words, each once, a list; empty where it is absent.
  std::vector<std::string> Words(const std::string& key, const std::vector<std::string>& words);
  /// Whole numbers, a list.
  std::vector<int64_t> Integers(const std::string& key, bool required);
  /// A member that is an object or a list of any values; null where it is absent or something else.
  const Json* Object(const std::string& key, bool required);
  const Json* List(const std::string& key);

  /// Complains of `key` being what it is.
  void Wrong(const std::string& key, const std::string& allowed);
  std::string PathOf(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  /// Complains of members that nobody asked for. Last.
  void Done();

 private:
  const Json* Find(const std::string& key, bool required);

  const Json* object_ = nullptr;
  const std::string path_;
  Complaints* const complaints_;
  std::set<std::string> known_;
};

}  // namespace tilewire::load

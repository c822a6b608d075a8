// Rows of numbers, as a table or as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewire::bench {

/// What a command found. Columns appear in the order in which rows first name them.
class Report {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  explicit Report(std::string title) : title_(std::move(title)) {}
  /// A number with its unit in its name ("p50_us").
  void Add(const std::string& row, const Values& values);
  /// A line under the table; "note" in JSON.
  void Note(const std::string& note) { notes_.push_back(note); }
  /// On stdout.
  void Print(bool json) const;

 private:
  void PrintTable() const;
  const std::string title_;
  std::vector<std::pair<std::string, Values>> rows_;
  std::vector<std::string> columns_, notes_;
};

}  // namespace tilewire::bench

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
  /// From now on the table goes to stdout row by row, as they are added; columns are those of the first row.
  /// Nothing for JSON, which Print writes.
  void Follow(bool json) { following_ = !json; }
  /// A number with its unit in its name ("p50_us").
  void Add(const std::string& row, const Values& values);
  /// A line under the table; "note" in JSON.
  void Note(const std::string& note) { notes_.push_back(note); }
  /// On stdout, what is not there yet.
  void Print(bool json) const;

 private:
  using Row = std::pair<std::string, Values>;
  std::string Table(const std::vector<Row>& rows) const;
  const std::string title_;
  std::vector<Row> rows_;
  std::vector<std::string> columns_, notes_;
  bool following_ = false;
};

}  // namespace tilewire::bench

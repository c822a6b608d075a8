#include "tests/bench/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

constexpr size_t kLeast =
    12;  // characters of a column, so that rows of which the widest is yet to come line up

}  // namespace

void Report::Add(const std::string& row, const Values& values) {
  rows_.emplace_back(row, values);
  for (const auto& [column, value] : values)
    if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) columns_.push_back(column);
  if (!following_) return;
  const std::string table = Table({rows_.back()});
  std::printf("%s", rows_.size() == 1 ? (title_ + "\n" + table).c_str() : &table[table.find('\n') + 1]);
  std::fflush(stdout);
}

void Report::Print(bool json) const {
  if (!json) {
    if (!following_ || rows_.empty()) std::printf("%s\n%s", title_.c_str(), Table(rows_).c_str());
    for (const auto& note : notes_) std::printf("%s\n", note.c_str());
    return;
  }
  nlohmann::ordered_json object{{"title", title_}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& [name, values] : rows_) {
    nlohmann::ordered_json row{{"name", name}};
    for (const auto& [column, value] : values) row[column] = value;
    object["rows"].push_back(row);
  }
  object["notes"] = notes_;
  std::printf("%s\n", object.dump(2).c_str());
}

std::string Report::Table(const std::vector<Row>& rows) const {
  std::vector<std::vector<std::string>> cells{{""}};
  cells[0].insert(cells[0].end(), columns_.begin(), columns_.end());
  for (const auto& [name, values] : rows) {
    auto& line = cells.emplace_back(1, name);
    for (const auto& column : columns_) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [&](const auto& value) { return value.first == column; });
      line.push_back(found == values.end() ? "-" : FormatFixed(found->second, found->second < 100 ? 2 : 0));
    }
  }
  return Columns(cells, 1, kLeast);
}

}  // namespace tilewire::bench

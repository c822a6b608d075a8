#include "tests/bench/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tilewire::bench {
namespace {

constexpr size_t kFollowedName = 16;  // of rows that are not known yet

int WidthOf(const std::string& column) {
  constexpr size_t kGap = 2, kNumber = 10;
  return static_cast<int>(std::max(column.size(), kNumber) + kGap);
}

}  // namespace

void Report::Add(const std::string& row, const Values& values) {
  rows_.emplace_back(row, values);
  for (const auto& [column, value] : values)
    if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) columns_.push_back(column);
  if (!following_) return;
  if (rows_.size() == 1) PrintHead(kFollowedName);
  PrintRow(rows_.back(), kFollowedName);
  std::fflush(stdout);
}

void Report::Print(bool json) const {
  if (!json) return PrintTable();
  nlohmann::ordered_json object{{"title", title_}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& [name, values] : rows_) {
    nlohmann::ordered_json row{{"name", name}};
    for (const auto& [column, value] : values) row[column] = value;
    object["rows"].push_back(row);
  }
  object["notes"] = notes_;
  std::printf("%s\n", object.dump(2).c_str());
}

void Report::PrintTable() const {
  size_t name_width = 0;
  for (const auto& row : rows_) name_width = std::max(name_width, row.first.size());
  if (!following_ || rows_.empty()) PrintHead(name_width);
  if (!following_)
    for (const auto& row : rows_) PrintRow(row, name_width);
  for (const auto& note : notes_) std::printf("%s\n", note.c_str());
}

void Report::PrintHead(size_t name_width) const {
  std::printf("%s\n%-*s", title_.c_str(), static_cast<int>(name_width), "");
  for (const auto& column : columns_) std::printf("%*s", WidthOf(column), column.c_str());
  std::printf("\n");
}

void Report::PrintRow(const std::pair<std::string, Values>& row, size_t name_width) const {
  const auto& [name, values] = row;
  std::printf("%-*s", static_cast<int>(name_width), name.c_str());
  for (const auto& column : columns_) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == column; });
    if (found == values.end()) {
      std::printf("%*s", WidthOf(column), "-");
    } else {
      std::printf("%*.*f", WidthOf(column), found->second < 100 ? 2 : 0, found->second);
    }
  }
  std::printf("\n");
}

}  // namespace tilewire::bench

#include "client/cli/timeline_boxes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

namespace tilewire::cli {
namespace {

constexpr size_t kMaxBoxes = 4000;

/// Boxes of one track. Pieces of one stage become one box where they are narrower than `narrow` pixels and
/// less than half of that apart, also with pieces of another stage in between.
std::vector<Box> BoxesOf(const Track& track, double total_us, double width, double narrow) {
  const double scale = width / total_us;
  std::vector<Box> boxes;
  std::map<std::string_view, size_t> open;  // the boxes that take what follows, by stage
  for (const Piece& piece : track.pieces) {
    const double left = std::clamp(piece.begin_us * scale, 0.0, width);
    const double right = std::clamp(piece.end_us * scale, left, width);
    const bool slim = right - left < narrow;
    const auto last = open.find(piece.name);
    if (slim && last != open.end() && left - boxes[last->second].right < narrow / 2) {
      Box& box = boxes[last->second];
      box.right = std::max(box.right, right);
      box.end_us = std::max(box.end_us, piece.end_us);
      box.busy_us += piece.end_us - piece.begin_us;
      box.bytes += piece.bytes;
      ++box.pieces;
      continue;
    }
    if (slim) {
      open[piece.name] = boxes.size();
    } else {
      open.erase(piece.name);
    }
    boxes.push_back(
        {left, right, piece.end_us - piece.begin_us, piece.begin_us, piece.end_us, piece.bytes, 1, &piece});
  }
  return boxes;
}

}  // namespace

std::vector<std::vector<Box>> BoxesOf(const std::vector<Track>& tracks, double total_us, double width) {
  for (double narrow = 1.5;; narrow *= 2) {
    std::vector<std::vector<Box>> rows;
    size_t count = 0;
    for (const Track& track : tracks)
      count += rows.emplace_back(BoxesOf(track, total_us, width, narrow)).size();
    // With everything within a row's width there is little left to join.
    if (count <= kMaxBoxes || narrow > width) return rows;
  }
}

double BusyMicros(const Track& track) {
  double busy = 0, covered = -std::numeric_limits<double>::infinity();
  for (const Piece& piece : track.pieces) {  // they ascend by their begin
    busy += std::max(0.0, piece.end_us - std::max(piece.begin_us, covered));
    covered = std::max(covered, piece.end_us);
  }
  return busy;
}

}  // namespace tilewire::cli

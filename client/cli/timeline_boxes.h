// From pieces of a track to boxes on a row of the picture.
#pragma once

#include <string>
#include <vector>

#include "client/cli/tracks.h"

namespace tilewire::cli {

/// What is drawn as one rectangle: a piece, or several that are too narrow to be told apart.
struct Box {
  double left, right;       ///< pixels from the row's begin
  double busy_us;           ///< of its pieces
  double begin_us, end_us;  ///< from the first piece's begin to the last one's end
  uint64_t bytes;           ///< of its pieces
  size_t pieces;
  const Piece* first;
};

/// Boxes of all tracks, at most some 4,000 in all: the more pieces there are, the wider what counts as
/// narrow. `width` pixels stand for `total_us`; pieces are cut to that. Boxes point into `tracks`.
std::vector<std::vector<Box>> BoxesOf(const std::vector<Track>& tracks, double total_us, double width);

/// Microseconds in which any piece of the track runs.
double BusyMicros(const Track& track);

}  // namespace tilewire::cli

// Fewer spans of a traced call, so that what shows them stays of a size that a browser and a reader bear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewire::load {

/// A piece of a call as it is drawn: one span, or several neighbours of the same row and stage.
struct DrawnSpan {
  const char* process;  ///< "client" or "server"
  std::string track;    ///< "stream 0", "lane 2"
  const char* stage;
  double begin_us, end_us;
  uint64_t spans = 1;    ///< that it was made of
  double busy_us = 0.0;  ///< of its length, what its spans covered
};

/// Merges neighbours of one process, track and stage, those with the shortest gaps between them first, until
/// there are `at_most`, or one of each kind. The result is in order of process, track, stage and begin; with
/// few enough spans nothing is merged.
void MergeSpans(size_t at_most, std::vector<DrawnSpan>* spans);

}  // namespace tilewire::load

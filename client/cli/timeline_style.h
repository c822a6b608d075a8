// Colours and words of the picture.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cli/tracks.h"

namespace tilewire::cli {

/// How a stage looks; its colour is in stage_colours.h.
struct Paint {
  const char* stage;  ///< Piece::name
  bool waits;         ///< drawn pale
};

/// The stages of one side, in the order of the data's way.
std::span<const Paint> PaintsOf(bool server);
/// The classes of a stage in the style sheet.
std::string StyleOf(const Paint& paint);
std::string StyleOf(bool server, const std::string& stage);
/// The style sheet: light, and dark where the reader prefers that.
std::string StyleSheet();

/// How long a stage took: as the server says, else the union of its pieces over all tracks.
double StageMicros(const client::Reply& reply, const std::vector<Track>& tracks, bool server,
                   const std::string& stage);

}  // namespace tilewire::cli

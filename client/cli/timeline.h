// A traced call as a picture for people: SVG, self-contained, for light and dark.
#pragma once

#include <string>

#include "client/cpp/client.h"

namespace tilewire::cli {

/// The picture's text. One row a track of TracksOf(), colours by stage, pale where a stage waits; shares of
/// the wall time on the right. Pieces too narrow to see are drawn as one, so its size is bounded (some 400
/// KB) however many spans there are.
std::string TimelineSvg(const std::string& title, const client::Reply& reply);

}  // namespace tilewire::cli

// A traced call as a Chrome trace, for ui.perfetto.dev and chrome://tracing.
#pragma once

#include <string>

#include "client/cpp/client.h"

namespace tilewire::cli {

/// The trace file's text: JSON, object form. Processes are "client" and "server DEVICE", threads the tracks
/// of TracksOf(); each span is a complete event with its bytes and place as arguments. Times are microseconds
/// from the call's start; `otherData` holds `title`, the timing as in --json, and how well the clocks are
/// aligned.
std::string TraceJson(const std::string& title, const client::Reply& reply);

}  // namespace tilewire::cli

#include "client/cli/trace.h"

#include "client/cli/report.h"
#include "client/cli/tracks.h"

namespace tilewire::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kClientProcess = 1, kServerProcess = 2;

/// An event that gives a process or thread its name, or its place among the others.
ordered_json Metadata(const char* what, int process, int thread, ordered_json arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", std::move(arguments)}};
}

ordered_json Event(const Piece& piece, const Track& track, int process, int thread) {
  ordered_json event{{"name", piece.name},   {"cat", track.server ? "server" : "client"}, {"ph", "X"},
                     {"ts", piece.begin_us}, {"dur", piece.end_us - piece.begin_us},      {"pid", process},
                     {"tid", thread}};
  ordered_json arguments = ordered_json::object();
  if (!piece.place.empty()) arguments["place"] = piece.place;
  if (piece.bytes > 0) arguments["bytes"] = piece.bytes;
  event["args"] = std::move(arguments);
  return event;
}

}  // namespace

std::string TraceJson(const std::string& title, const client::Reply& reply) {
  ordered_json events = ordered_json::array();
  for (const bool server : {false, true}) {
    const int process = server ? kServerProcess : kClientProcess;
    events.push_back(Metadata("process_name", process, 0, {{"name", ProcessName(reply, server)}}));
    events.push_back(Metadata("process_sort_index", process, 0, {{"sort_index", process}}));
  }
  int thread = 0;
  for (const Track& track : TracksOf(reply)) {
    const int process = track.server ? kServerProcess : kClientProcess;
    ++thread;
    events.push_back(Metadata("thread_name", process, thread, {{"name", track.name}}));
    events.push_back(Metadata("thread_sort_index", process, thread, {{"sort_index", thread}}));
    for (const Piece& piece : track.pieces) events.push_back(Event(piece, track, process, thread));
  }
  ordered_json about{{"title", title}, {"timing", JsonTiming(reply)}};
  if (reply.trace)
    about["trace"] = {{"server_origin_us", reply.trace->server_origin_us},
                      {"clock_error_us", reply.trace->clock_error_us},
                      {"client_spans_dropped", reply.trace->spans_dropped},
                      {"server_spans_dropped", reply.timing.spans_dropped}};
  const ordered_json file{
      {"displayTimeUnit", "ms"}, {"otherData", std::move(about)}, {"traceEvents", std::move(events)}};
  return file.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tilewire::cli

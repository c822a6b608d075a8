#include "client/cli/timeline.h"

#include <algorithm>
#include <cmath>

#include "client/cli/timeline_boxes.h"
#include "client/cli/timeline_style.h"
#include "kernels/figures/svg.h"
#include "kernels/figures/text.h"

namespace tilewire::cli {
namespace {

using svg::Rect;
using svg::Text;

constexpr double kWidth = 1200, kLeft = 132, kRight = 62, kPlot = kWidth - kLeft - kRight;

/// What the picture's parts need to know of each other.
struct Layout {
  const client::Reply& reply;
  std::vector<Track> tracks;
  double total_us = 1;
  double row = 18;  ///< height of a row
  double top = 0, bottom = 0;
};

std::string Join(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : "  ·  ") + word;
  return out;
}

std::string Count(uint64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

/// The sentence under the title.
std::string Summary(const client::Reply& reply) {
  const client::Timing& t = reply.timing;
  std::vector<std::string> words;
  if (!t.device.empty()) words.push_back(t.device);
  words.push_back(reply.streamed ? Count(t.streams, "stream") + ", " + Count(t.lanes, "lane")
                                 : "one message");
  words.push_back(FormatBytes(t.bytes_in) + " in, " + FormatBytes(t.bytes_out) + " out");
  const double seconds = std::max(reply.client_wall_us, 1e-3) / 1e6;
  words.push_back("wall " + FormatTime(reply.client_wall_us) + " (" +
                  FormatRate(static_cast<double>(t.bytes_in + t.bytes_out) / seconds) + ")");
  if (t.overlap) words.push_back("overlap " + FormatFixed(*t.overlap, 2));
  if (!t.bottleneck.empty()) words.push_back("bottleneck " + t.bottleneck);
  return Join(words);
}

/// The stages that occur on one side, each with its colour. Returns where the line ends.
std::string Legend(const Layout& layout, bool server, double y) {
  std::string out = Text(18, y, "n", server ? "server" : "client");
  double x = kLeft;
  for (const Paint& paint : PaintsOf(server)) {
    double busy = 0;
    bool occurs = false;
    for (const Track& track : layout.tracks) {
      if (track.server != server) continue;
      for (const Piece& piece : track.pieces) occurs = occurs || piece.name == paint.stage;
    }
    if (!occurs) continue;
    busy = StageMicros(layout.reply, layout.tracks, server, paint.stage);
    const bool worst = server && layout.reply.timing.bottleneck == paint.stage;
    const std::string words = std::string(paint.stage) + " " + FormatTime(busy);
    out += Rect(x, y - 9.5, 11, 11, StyleOf(paint));
    out += Text(x + 16, y, worst ? "b" : "n", words);
    x += 30 + (worst ? 7.2 : 6.4) * static_cast<double>(words.size());
  }
  return out;
}

/// 1, 2 or 5 times a power of ten, so that the axis has some ten marks.
double TickStep(double total_us) {
  const double raw = total_us / 10, power = std::pow(10, std::floor(std::log10(raw)));
  const double mantissa = raw / power;
  return power * (mantissa <= 1 ? 1 : mantissa <= 2 ? 2 : mantissa <= 5 ? 5 : 10);
}

std::string Axis(const Layout& layout) {
  const double step = TickStep(layout.total_us);
  const double unit = layout.total_us >= 10e6 ? 1e6 : layout.total_us >= 2000 ? 1e3 : 1;
  const char* const name = unit == 1e6 ? " s" : unit == 1e3 ? " ms" : " µs";
  std::string out;
  for (int i = 0; i * step <= layout.total_us; ++i) {
    const double x = kLeft + i * step / layout.total_us * kPlot;
    out += svg::Line(x, layout.top - 4, x, layout.bottom + 4, "g");
    out += Text(x, layout.bottom + 18, "t", FormatNumber(i * step / unit) + name);
  }
  return out;
}

std::string Tooltip(const Box& box) {
  std::string words = box.first->name;
  if (box.pieces > 1) {
    words += " × " + std::to_string(box.pieces) + ": " + FormatTime(box.busy_us) + " of " +
             FormatTime(box.end_us - box.begin_us);
  } else {
    if (!box.first->place.empty()) words += " " + box.first->place;
    words += ": " + FormatTime(box.busy_us);
  }
  words += " from " + FormatTime(box.begin_us);
  if (box.bytes > 0) words += ", " + FormatBytes(box.bytes);
  return words;
}

/// What lies behind a row, and its words.
std::string Frame(const Layout& layout, const Track& track, double y) {
  const bool low = layout.row < 11;
  const double base = y + layout.row / 2 + (low ? 3 : 4);
  const double share = std::min(BusyMicros(track) / layout.total_us, 1.0);
  return Text(kLeft - 8, base, low ? "l s" : "l", track.name) + Rect(kLeft, y, kPlot, layout.row, "z") +
         Text(kLeft + kPlot + 8, base, low ? "p s" : "p", FormatShare(share));
}

std::string Boxes(const Layout& layout, const Track& track, const std::vector<Box>& boxes, double y) {
  std::string out;
  for (const Box& box : boxes) {
    // A hair of space tells neighbours apart; nothing is narrower than what can be seen.
    const double space = box.right - box.left > 3 ? 0.5 : 0;
    const double width = std::max(box.right - box.left - space, 0.7);
    const double left = std::min(box.left, kPlot - width);
    const double filled = box.busy_us / std::max(box.end_us - box.begin_us, 1e-3);
    const double opacity = box.pieces > 1 && filled < 0.95 ? std::max(filled, 0.3) : 1;
    out += Rect(kLeft + left, y, width, layout.row, StyleOf(track.server, box.first->name), Tooltip(box),
                opacity);
  }
  return out;
}

/// The remark at the foot: what the picture cannot show.
std::string Remark(const client::Reply& reply) {
  std::vector<std::string> words{"pale: waiting", "right: share of the wall time",
                                 "server's clock ±" + FormatTime(reply.trace->clock_error_us)};
  if (reply.attempts > 1) words.push_back(Count(static_cast<uint64_t>(reply.attempts), "attempt"));
  const uint64_t dropped = reply.trace->spans_dropped + reply.timing.spans_dropped;
  if (dropped > 0) words.push_back(Count(dropped, "later span") + " not kept");
  return Join(words);
}

Layout LayoutOf(const client::Reply& reply) {
  Layout layout{.reply = reply, .tracks = TracksOf(reply)};
  layout.total_us = reply.client_wall_us;
  for (const Track& track : layout.tracks)
    if (!track.server)
      for (const Piece& piece : track.pieces) layout.total_us = std::max(layout.total_us, piece.end_us);
  layout.total_us = std::max(layout.total_us, 1e-3);
  const size_t rows = layout.tracks.size();
  layout.row = rows <= 24 ? 18 : rows <= 48 ? 12 : 8;
  return layout;
}

}  // namespace

std::string TimelineSvg(const std::string& title, const client::Reply& reply) {
  if (!reply.trace) return {};
  Layout layout = LayoutOf(reply);
  const auto rows = BoxesOf(layout.tracks, layout.total_us, kPlot);
  std::string head = Text(18, 32, "h", title) + Text(18, 54, "n", Summary(reply));
  head += Legend(layout, false, 84) + Legend(layout, true, 104);
  layout.top = layout.bottom = 124;
  std::string frames, boxes;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Track& track = layout.tracks[i];
    double& y = layout.bottom;
    if (i == 0 || track.server != layout.tracks[i - 1].server) {
      frames += Text(18, y + 15, "b", ProcessName(reply, track.server));
      y += 22;
    }
    frames += Frame(layout, track, y);
    boxes += Boxes(layout, track, rows[i], y);
    y += layout.row + (layout.row >= 12 ? 4 : 2);
  }
  const double height = layout.bottom + 52;
  return svg::Document(kWidth, height, title, StyleSheet(),
                       Rect(0, 0, kWidth, height, "k") + head + frames + Axis(layout) + boxes +
                           Text(18, height - 14, "f", Remark(reply)));
}

}  // namespace tilewire::cli

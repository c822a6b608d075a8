#include "client/cli/timeline_style.h"

#include <algorithm>

#include "client/cli/timeline_boxes.h"

namespace tilewire::cli {
namespace {

constexpr Paint kClient[] = {
    {"call", "c0", "#8b949e", true},     {"retry", "c1", "#c2571a", false},
    {"connect", "c2", "#a475f9", false}, {"open", "c3", "#8b949e", true},
    {"write", "c4", "#4c8dd6", false},   {"result", "c5", "#d4a72c", true},
    {"exchange", "c6", "#4c8dd6", true}, {"receive", "c7", "#57ab5a", true},
    {"sink", "c8", "#2f9e6e", false},
};
constexpr Paint kServer[] = {
    {"queue", "s0", "#8b949e", true}, {"receive", "s1", "#4c8dd6", false}, {"stage", "s2", "#2bb3a3", false},
    {"h2d", "s3", "#f0883e", false},  {"kernel", "s4", "#e0475b", false},  {"finish", "s5", "#a8324a", false},
    {"d2h", "s6", "#d4a72c", false},  {"send", "s7", "#57ab5a", false},
};

}  // namespace

std::span<const Paint> PaintsOf(bool server) {
  return server ? std::span<const Paint>(kServer) : std::span<const Paint>(kClient);
}

const char* StyleOf(bool server, const std::string& stage) {
  for (const Paint& paint : PaintsOf(server))
    if (stage == paint.stage) return paint.style;
  return "c0";
}

std::string StyleSheet() {
  std::string out =
      "<style>\n"
      "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#30363d}\n"
      ".h{font-size:17px;font-weight:600;fill:#1f2328}.b{font-weight:700;fill:#1f2328}\n"
      ".l{text-anchor:end;font-size:11px}.t{text-anchor:middle;font-size:11px;fill:#59636e}\n"
      ".p{font-size:11px;fill:#59636e}.f{font-size:11px;fill:#59636e}text.s{font-size:8px}\n"
      ".k{fill:#fff}.z{fill:#eff2f5}.g{stroke:#d1d9e0;fill:none}\n"
      "@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.h,.b{fill:#f0f6fc}.t,.p,.f{fill:#8b949e}\n"
      ".k{fill:#0d1117}.z{fill:#161b22}.g{stroke:#30363d}}\n";
  for (const bool server : {false, true})
    for (const Paint& paint : PaintsOf(server))
      out += std::string(".") + paint.style + "{fill:" + paint.colour +
             (paint.waits ? ";fill-opacity:.38" : "") + "}";
  return out + "\n</style>\n";
}

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

double StageMicros(const client::Reply& reply, const std::vector<Track>& tracks, bool server,
                   const std::string& stage) {
  const client::Timing& t = reply.timing;
  const std::pair<const char*, std::optional<double>> told[] = {
      {"queue", t.queue_us},   {"receive", t.receive_us}, {"stage", t.stage_us}, {"h2d", t.h2d_us},
      {"kernel", t.kernel_us}, {"d2h", t.d2h_us},         {"send", t.send_us}};
  for (const auto& [name, us] : told)
    if (server && us && stage == name) return *us;
  Track all{.server = server, .name = stage, .pieces = {}};
  for (const Track& track : tracks)
    for (const Piece& piece : track.pieces)
      if (track.server == server && piece.name == stage) all.pieces.push_back(piece);
  std::sort(all.pieces.begin(), all.pieces.end(),
            [](const Piece& a, const Piece& b) { return a.begin_us < b.begin_us; });
  return BusyMicros(all);
}

}  // namespace tilewire::cli

#include "client/cli/timeline_style.h"

#include <algorithm>

#include "client/cli/stage_colours.h"
#include "client/cli/timeline_boxes.h"

namespace tilewire::cli {
namespace {

constexpr Paint kClient[] = {
    {"call", true},   {"retry", false},   {"connect", false}, {"open", true},  {"write", false},
    {"result", true}, {"exchange", true}, {"receive", true},  {"sink", false},
};
constexpr Paint kServer[] = {
    {"queue", true},   {"receive", false}, {"stage", false}, {"h2d", false},   {"kernel", false},
    {"finish", false}, {"d2h", false},     {"send", false},  {"other", false},
};

}  // namespace

std::span<const Paint> PaintsOf(bool server) {
  return server ? std::span<const Paint>(kServer) : std::span<const Paint>(kClient);
}

std::string StyleOf(const Paint& paint) {
  return std::string(paint.stage) + (paint.waits ? " w" : "");
}

std::string StyleOf(bool server, const std::string& stage) {
  for (const Paint& paint : PaintsOf(server))
    if (stage == paint.stage) return StyleOf(paint);
  return StyleOf(kClient[0]);
}

std::string StyleSheet() {
  std::string light, dark;
  for (const StageColour& colour : kStageColours) {
    const std::string rule = "." + std::string(colour.stage) + "{fill:";
    light += rule + std::string(colour.light) + "}";
    if (colour.dark != colour.light) dark += rule + std::string(colour.dark) + "}";
  }
  return "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#30363d}\n"
         ".h{font-size:17px;font-weight:600;fill:#1f2328}.b{font-weight:700;fill:#1f2328}\n"
         ".l{text-anchor:end;font-size:11px}.t{text-anchor:middle;font-size:11px;fill:#59636e}\n"
         ".p{font-size:11px;fill:#59636e}.f{font-size:11px;fill:#59636e}text.s{font-size:8px}\n"
         ".k{fill:#fff}.z{fill:#eff2f5}.g{stroke:#d1d9e0;fill:none}.w{fill-opacity:.38}\n" +
         light +
         "\n@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.h,.b{fill:#f0f6fc}.t,.p,.f{fill:#8b949e}\n"
         ".k{fill:#0d1117}.z{fill:#161b22}.g{stroke:#30363d}\n" +
         dark + "}\n";
}

double StageMicros(const client::Reply& reply, const std::vector<Track>& tracks, bool server,
                   const std::string& stage) {
  const client::Timing& t = reply.timing;
  const std::pair<const char*, std::optional<double>> told[] = {
      {"queue", t.queue_us},   {"receive", t.receive_us}, {"stage", t.stage_us}, {"h2d", t.h2d_us},
      {"kernel", t.kernel_us}, {"d2h", t.d2h_us},         {"send", t.send_us},   {"other", t.other_us}};
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

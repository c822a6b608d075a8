#include "client/cli/report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "kernels/figures/text.h"

namespace tilewire::cli {
namespace {

using nlohmann::ordered_json;

using StageTime = std::pair<const char*, std::optional<double>>;

std::array<StageTime, 8> Stages(const client::Timing& t) {
  return {{{"queue", t.queue_us},
           {"receive", t.receive_us},
           {"stage", t.stage_us},
           {"h2d", t.h2d_us},
           {"kernel", t.kernel_us},
           {"d2h", t.d2h_us},
           {"send", t.send_us},
           {"other", t.other_us}}};
}

}  // namespace

std::string TimeoutPassed(std::chrono::milliseconds timeout) {
  return "--timeout of " + FormatDouble(static_cast<double>(timeout.count()) / 1000) + " s passed";
}

ordered_json JsonShape(const Shape& shape) {
  ordered_json out = ordered_json::array();
  for (const int64_t dim : shape.dims()) out.push_back(dim);
  return out;
}

ordered_json JsonTiming(const client::Reply& reply) {
  const client::Timing& t = reply.timing;
  ordered_json out = ordered_json::object();
  for (const auto& [name, time] : Stages(t))
    if (time) out[std::string(name) + "_us"] = *time;
  out["wall_us"] = t.wall_us;
  out["bytes_in"] = t.bytes_in;
  out["bytes_out"] = t.bytes_out;
  out["blocks"] = t.blocks;
  out["ranges"] = t.ranges;
  out["lanes"] = t.lanes;
  out["streams"] = t.streams;
  out["device"] = t.device;
  if (t.region_bytes_in > 0) out["region_bytes_in"] = t.region_bytes_in;
  if (t.region_bytes_out > 0) out["region_bytes_out"] = t.region_bytes_out;
  if (t.bytes_copied) out["bytes_copied"] = *t.bytes_copied;
  if (t.overlap) out["overlap"] = *t.overlap;
  if (!t.bottleneck.empty()) out["bottleneck"] = t.bottleneck;
  if (t.bottleneck_share) out["bottleneck_share"] = *t.bottleneck_share;
  if (t.round_trip_us) out["server_round_trip_us"] = *t.round_trip_us;
  if (t.window_share) out["window_share"] = *t.window_share;
  out["client_wall_us"] = reply.client_wall_us;
  out["attempts"] = reply.attempts;
  out["streamed"] = reply.streamed;
  if (reply.round_trip_us > 0) out["round_trip_us"] = reply.round_trip_us;
  return out;
}

int Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return kExitOk;
  return PrintError(Status(Code::kDataLoss, "STDOUT", "stdout took only part of the answer"));
}

namespace {

std::string Bottleneck(const client::Timing& t) {
  std::string text = "  <- bottleneck";
  if (t.bottleneck_share) {
    text += ", at " + FormatFixed(100 * *t.bottleneck_share, 0) + "% of plain copies";
  }
  return text;
}

}  // namespace

int PrintError(const Status& status, int exit_code) {
  std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  return exit_code;
}

void PrintTiming(const client::Reply& reply) {
  const client::Timing& t = reply.timing;
  const auto row = [](const char* name, double us, const char* note) {
    std::fprintf(stderr, "  %-14s%12.3f ms%s\n", name, us / 1000, note);
  };
  std::fprintf(stderr, "timing (%s, %s%s)\n", t.device.empty() ? "device not named" : t.device.c_str(),
               reply.streamed ? "streamed" : "one message", reply.attempts > 1 ? ", retried" : "");
  for (const auto& [name, time] : Stages(t))
    if (time) row(name, *time, t.bottleneck == name ? Bottleneck(t).c_str() : "");
  row("server wall", t.wall_us, "");
  row("client wall", reply.client_wall_us, "");
  const double bytes = static_cast<double>(t.bytes_in + t.bytes_out);
  std::fprintf(stderr, "  %-14s%s in, %s out", "bytes", FormatBytes(t.bytes_in).c_str(),
               FormatBytes(t.bytes_out).c_str());
  if (reply.client_wall_us > 0) std::fprintf(stderr, ", %.2f GB/s", bytes / reply.client_wall_us / 1000);
  std::fprintf(stderr, "\n");
  if (reply.round_trip_us > 0)
    std::fprintf(stderr, "  %-14s%u, %s ms away\n", "connections", t.streams,
                 FormatFixed(reply.round_trip_us / 1000, 1).c_str());
  // Where it is little, something else limits, and nobody wants to know of windows.
  if (t.window_share && *t.window_share >= 0.5)
    std::fprintf(stderr,
                 "  %-14sexplains %s%% of receiving: a window a round trip; more --connections help\n",
                 "distance", FormatFixed(100 * *t.window_share, 0).c_str());
  if (t.overlap) std::fprintf(stderr, "  %-14s%.2f\n", "overlap", *t.overlap);
  if (t.bytes_copied && bytes > 0)
    std::fprintf(stderr, "  copies per payload byte %.2f\n", static_cast<double>(*t.bytes_copied) / bytes);
}

ProgressLine::ProgressLine() : enabled_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fprintf(stderr, "\r\x1b[K");
}

void ProgressLine::Update(const client::Progress& p) {
  const auto now = Clock::now();
  if (!enabled_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  constexpr int kWidth = 30;
  const auto done = static_cast<double>(p.sent + p.received);
  const auto total = static_cast<double>(std::max<uint64_t>(p.send_total + p.receive_total, 1));
  const int filled = static_cast<int>(kWidth * done / total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fprintf(stderr, "\r[%s%s] %3.0f%%  %s sent, %s received  %.2f GB/s\x1b[K",
               std::string(filled, '#').c_str(), std::string(kWidth - filled, '.').c_str(),
               100 * done / total, FormatBytes(p.sent).c_str(), FormatBytes(p.received).c_str(),
               done / seconds / 1e9);
}

}  // namespace tilewire::cli

// Stages of a job and where its time went. The twin of tilewire.v1.Timing without protobuf.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewire {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// Numbers equal tilewire.v1.Stage.
enum class Stage : uint8_t {
  kQueue = 1,
  kReceive = 2,
  kStage = 3,
  kH2D = 4,
  kKernel = 5,
  kD2H = 6,
  kSend = 7,
  kOther = 8  ///< what no span covers; no span has it
};
inline constexpr int kStageCount = 9;  ///< for arrays indexed by Stage; 0 is unused

/// One timed piece of a stage on the host's steady clock.
struct Span {
  Stage stage;
  TimePoint begin, end;
  uint32_t track = 0;    ///< lane or stream number
  uint64_t index = 0;    ///< block or range number
  uint64_t bytes = 0;    ///< moved or, by a range, read; 0: unknown
  uint32_t operand = 0;  ///< of the block, on its way in; when sent, its result
};

/// Filled when a job ends. Stage times are unions of spans, that of kOther what they leave of wall_us;
/// microseconds; < 0: not observed.
struct Timing {
  std::array<double, kStageCount> stage_us;
  double wall_us = 0;
  uint64_t bytes_in = 0, bytes_out = 0, blocks = 0, ranges = 0;
  uint64_t region_bytes_in = 0, region_bytes_out = 0;  ///< read from and written to regions
  uint64_t bytes_copied = 0;                           ///< array bytes that the CPU copied
  uint32_t lanes = 0, streams = 0;
  std::string device;
  double overlap = -1;  ///< < 0: not observed
  std::string bottleneck;
  double bottleneck_share = -1;  ///< of its measured rate; < 0: nothing to compare with
  double round_trip_us = -1;     ///< of the connection when it came; < 0: not measured
  double window_share = -1;      ///< of kReceive, that a window for each round trip takes; < 0: not known
  std::vector<Span> spans;       ///< only with trace
  uint64_t spans_dropped = 0;    ///< that found no room among them
  TimePoint origin;              ///< zero of the spans
  Timing() { stage_us.fill(-1); }
  double of(Stage stage) const { return stage_us[static_cast<size_t>(stage)]; }
};

/// "queue", "receive", "stage", "h2d", "kernel", "d2h", "send", "other".
const char* StageName(Stage stage);

}  // namespace tilewire

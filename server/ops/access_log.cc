#include "server/ops/access_log.h"

#include <spdlog/spdlog.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "server/ops/logging.h"

namespace tilewire::ops {

namespace {

/// "queue_us" and the like.
const std::array<std::string, kStageCount> kStageFields = [] {
  std::array<std::string, kStageCount> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = std::string(StageName(static_cast<Stage>(i))) + "_us";
  return names;
}();

/// Nobody needs more digits of a share, and clocks have none of a microsecond but what differences of doubles
/// leave; writing them all takes far longer.
double InThousandths(double number) {
  return std::round(number * 1e3) / 1e3;
}

}  // namespace

spdlog::level::level_enum CallLevel(const Status& status) {
  switch (status.code()) {
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kUnavailable:
    case Code::kDataLoss:
      return spdlog::level::warn;
    case Code::kResourceExhausted:
      return status.reason() == "BUSY" ? spdlog::level::warn : spdlog::level::info;
    case Code::kDeadlineExceeded:
      return status.reason() == "IDLE" ? spdlog::level::info : spdlog::level::warn;
    default:
      return spdlog::level::info;
  }
}

void LogCall(const rpc::CallRecord& record, std::chrono::system_clock::time_point now) {
  const auto level = CallLevel(record.status);
  if (!spdlog::should_log(level)) return;
  std::vector<Field> fields;
  fields.reserve(30);
  auto add_text = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) fields.emplace_back(name, text);
  };
  const Timing& timing = record.timing;
  add_text("method", record.method);
  add_text("operation", record.operation);
  fields.emplace_back("status", CodeName(record.status.code()));
  add_text("reason", record.status.reason());
  fields.emplace_back("wall_us", timing.wall_us);
  fields.emplace_back("bytes_in", record.bytes_in);
  fields.emplace_back("bytes_out", record.bytes_out);
  if (timing.region_bytes_in > 0) fields.emplace_back("region_bytes_in", timing.region_bytes_in);
  if (timing.region_bytes_out > 0) fields.emplace_back("region_bytes_out", timing.region_bytes_out);
  for (int i = 1; i < kStageCount; ++i) {
    const Stage stage = static_cast<Stage>(i);
    if (timing.of(stage) >= 0)
      fields.emplace_back(kStageFields[static_cast<size_t>(i)], InThousandths(timing.of(stage)));
  }
  if (timing.overlap >= 0) fields.emplace_back("overlap", InThousandths(timing.overlap));
  add_text("bottleneck", timing.bottleneck);
  if (timing.round_trip_us >= 0) fields.emplace_back("round_trip_us", timing.round_trip_us);
  if (timing.window_share >= 0) fields.emplace_back("window_share", InThousandths(timing.window_share));
  add_text("device", timing.device);
  if (timing.blocks > 0) fields.emplace_back("blocks", timing.blocks);
  if (timing.streams > 1) fields.emplace_back("streams", timing.streams);
  add_text("job", record.job);
  add_text("identity", record.identity);
  add_text("peer", record.peer);
  add_text("request_id", record.request_id);
  add_text("traceparent", record.traceparent);
  const std::string message = record.status.LogText();
  add_text("message", message);
  LogEvent(level, "call", fields, now);
}

void LogFolded(const FailureKind& kind, uint64_t calls) {
  std::vector<Field> fields{{"calls", calls}};
  auto add_text = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) fields.emplace_back(name, text);
  };
  add_text("method", kind.method);
  add_text("status", kind.status);
  add_text("reason", kind.reason);
  add_text("caller", kind.caller);
  LogEvent(spdlog::level::warn, "calls folded", fields);
}

}  // namespace tilewire::ops

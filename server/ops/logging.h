// Log lines on stderr: one line an event, for people or for programs, whatever bytes clients put into fields.
#pragma once

#include <spdlog/common.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/ops/line_text.h"

namespace tilewire::ops {

/// A named value of an event. Names are ours: lower_snake, units last. Views what it is given, which outlives
/// the event's logging.
struct Field {
  using Value = std::variant<std::string_view, int64_t, double, bool>;

  Field(std::string_view field_name, std::string_view text) : name(field_name), value(text) {}
  Field(std::string_view field_name, const char* text) : name(field_name), value(std::string_view(text)) {}
  Field(std::string_view field_name, const std::string& text)
      : name(field_name), value(std::string_view(text)) {}
  Field(std::string_view field_name, bool truth) : name(field_name), value(truth) {}
  Field(std::string_view field_name, double number) : name(field_name), value(number) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Field(std::string_view field_name, T number)
      : name(field_name), value(static_cast<int64_t>(number)) {}

  std::string_view name;
  Value value;
};

/// Makes every spdlog line of this process a line on stderr in `format` ("text" or "json"; else text) from
/// `level`
/// ("trace", "debug", "info", "warn", "error"; else info) upward. Call once before threads log. Throws
/// std::system_error where no thread can be made.
///   text: 2026-01-02T03:04:05.678Z info  call finished method=Kernels.Rmse wall_us=812.4 peer="a b"
///   json: {"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"call finished","method":"Kernels.Rmse",...}
/// Text is plain ASCII: other bytes, control characters, quotes and backslashes are escaped (\xNN, \", \\).
/// JSON is ASCII as well; what is not UTF-8 becomes U+FFFD.
void InitLogging(const std::string& format, const std::string& level);

/// Waits until what was logged is on stderr, for a second at most: before the process ends without
/// destructors, and before it tells others that it is ready. Thread-safe.
void FlushLog();
/// Lines of this process that nobody will read, because they came faster than stderr was. Thread-safe.
uint64_t DroppedLogLines();

/// Logs one event. Thread-safe; never throws, never waits for a reader. Costs a comparison where the level is
/// off.
void LogEvent(spdlog::level::level_enum level, std::string_view msg, std::span<const Field> fields);
void LogEvent(spdlog::level::level_enum level, std::string_view msg,
              std::initializer_list<Field> fields = {});
/// The same, of another time than now.
void LogEvent(spdlog::level::level_enum level, std::string_view msg, std::span<const Field> fields,
              spdlog::log_clock::time_point time);

/// RFC 3339, UTC, milliseconds: as lines begin. The text is good until this thread asks for another.
std::string_view Timestamp(spdlog::log_clock::time_point time);

/// Appends the line of an event without its newline; what InitLogging's formats print. For tests and other
/// sinks.
void FormatTextLine(spdlog::log_clock::time_point time, spdlog::level::level_enum level, std::string_view msg,
                    std::span<const Field> fields, LineText* out);
void FormatJsonLine(spdlog::log_clock::time_point time, spdlog::level::level_enum level, std::string_view msg,
                    std::span<const Field> fields, LineText* out);

}  // namespace tilewire::ops

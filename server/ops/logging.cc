#include "server/ops/logging.h"

#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <utility>

#include "server/base/limits.h"
#include "server/ops/json_line.h"
#include "server/ops/log_sink.h"

namespace tilewire::ops {
namespace {

using spdlog::level::level_enum;
using LineFormat = void (*)(spdlog::log_clock::time_point, level_enum, std::string_view,
                            std::span<const Field>, LineText*);

/// What waits for a reader of stderr: some 5,000 lines.
constexpr size_t kMostWaitingBytes = 2 * kMiB;
/// Nobody who looks on notices.
constexpr std::chrono::milliseconds kGather{10};

/// The sink of this process, which the default logger owns; kept beside it so that it can be asked.
std::shared_ptr<LogSink> process_sink;

/// Fields of the event that this thread is logging: our sink formats on the caller's thread, so its
/// formatter finds them here.
thread_local std::span<const Field> current_fields;

/// A line of a logger is one of our lines.
class LineFormatter : public spdlog::formatter {
 public:
  explicit LineFormatter(LineFormat line_format) : format_(line_format) {}

  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& dest) override {
    LineText line;
    format_(msg.time, msg.level, std::string_view(msg.payload.data(), msg.payload.size()), current_fields,
            &line);
    line += '\n';
    dest.append(line.view().data(), line.view().data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  LineFormat format_;
};

}  // namespace

std::string_view Timestamp(spdlog::log_clock::time_point time) {
  // Many lines are of one second, and a call's two of one millisecond.
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  thread_local int64_t last_second = kNone, last_ms = kNone;
  thread_local std::array<char, 48> text{};
  thread_local size_t millis_at = 0;
  constexpr std::string_view kMillis = ".000Z";
  const int64_t ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  if (ms != last_ms) {
    const auto second = std::chrono::floor<std::chrono::seconds>(std::chrono::milliseconds(ms)).count();
    if (second != last_second) {
      const auto seconds = static_cast<std::time_t>(second);
      std::tm utc{};
      gmtime_r(&seconds, &utc);
      millis_at = std::strftime(text.data(), text.size() - kMillis.size(), "%Y-%m-%dT%H:%M:%S", &utc);
      std::ranges::copy(kMillis, text.begin() + static_cast<std::ptrdiff_t>(millis_at));
      last_second = second;
    }
    const auto millis = static_cast<unsigned>(ms - 1000 * second);
    const auto digit = [](unsigned value) { return static_cast<char>('0' + value % 10); };
    text[millis_at + 1] = digit(millis / 100);
    text[millis_at + 2] = digit(millis / 10);
    text[millis_at + 3] = digit(millis);
    last_ms = ms;
  }
  return {text.data(), millis_at + kMillis.size()};
}

namespace {

std::string_view LevelName(level_enum level) {
  switch (level) {
    case level_enum::trace:
      return "trace";
    case level_enum::debug:
      return "debug";
    case level_enum::info:
      return "info";
    case level_enum::warn:
      return "warn";
    case level_enum::err:
      return "error";
    case level_enum::critical:
      return "fatal";
    default:
      return "off";
  }
}

/// How many characters stand for themselves until one does not.
size_t PlainPrefix(std::string_view text) {
  const auto is_plain = [](char c) { return kPlainText[static_cast<unsigned char>(c)]; };
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
}

/// Printable ASCII stays, all else is escaped, so that a line stays one line and a terminal obeys nobody.
void AppendEscaped(std::string_view text, LineText* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (;;) {
    const size_t plain = PlainPrefix(text);
    *out += text.substr(0, plain);
    if (plain == text.size()) return;
    const auto byte = static_cast<unsigned char>(text[plain]);
    text.remove_prefix(plain + 1);
    *out += '\\';
    if (byte == '"' || byte == '\\') {
      *out += static_cast<char>(byte);
    } else {
      *out += 'x';
      *out += kHex[byte >> 4];
      *out += kHex[byte & 15];
    }
  }
}

void AppendTextValue(std::string_view text, LineText* out) {
  const auto is_bare = [](char c) {
    return kPlainText[static_cast<unsigned char>(c)] && c != ' ' && c != '=';
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_bare)) {
    *out += text;
    return;
  }
  *out += '"';
  AppendEscaped(text, out);
  *out += '"';
}

void AppendNumber(double number, LineText* out) {
  if (AppendThousandths(number, out)) return;
  // As "%.10g", which takes printf far longer; and where the digits that tell the number from all others are
  // few, as those of times are, they are had sooner still.
  constexpr int kDigits = 10;
  constexpr double kLeastFixed = 1e-4;  // smaller ones are written with an exponent
  std::array<char, 40> buffer{};
  char* const begin = buffer.data();
  auto end = std::to_chars(begin, begin + buffer.size(), number, std::chars_format::fixed);
  if (end.ec != std::errc() || end.ptr - begin > kDigits || std::abs(number) < kLeastFixed)
    end = std::to_chars(begin, begin + buffer.size(), number, std::chars_format::general, kDigits);
  *out += std::string_view(begin, end.ptr);
}

}  // namespace

void FormatTextLine(spdlog::log_clock::time_point time, level_enum level, std::string_view msg,
                    std::span<const Field> fields, LineText* out) {
  constexpr size_t kLevelWidth = 5;
  *out += Timestamp(time);
  *out += ' ';
  const std::string_view name = LevelName(level);
  *out += name;
  for (size_t at = name.size(); at <= kLevelWidth; ++at) *out += ' ';
  AppendEscaped(msg, out);
  for (const Field& field : fields) {
    *out += ' ';
    *out += field.name;
    *out += '=';
    if (const auto* text = std::get_if<std::string_view>(&field.value)) AppendTextValue(*text, out);
    if (const auto* whole = std::get_if<int64_t>(&field.value)) *out += *whole;
    if (const auto* number = std::get_if<double>(&field.value)) AppendNumber(*number, out);
    if (const auto* truth = std::get_if<bool>(&field.value)) *out += *truth ? "true" : "false";
  }
}

void FormatJsonLine(spdlog::log_clock::time_point time, level_enum level, std::string_view msg,
                    std::span<const Field> fields, LineText* out) {
  JsonLine line(out);
  line.AddOurs("ts", Timestamp(time)).Add("level", LevelName(level)).Add("msg", msg);
  for (const Field& field : fields)
    std::visit([&](const auto& value) { line.Add(field.name, value); }, field.value);
  line.End();
}

void InitLogging(const std::string& format, const std::string& level) {
  const LineFormat line_format = format == "json" ? FormatJsonLine : FormatTextLine;
  const auto dropped_line = [line_format](uint64_t lines) {
    const Field count("count", lines);
    LineText line;
    line_format(spdlog::log_clock::now(), level_enum::warn, "log lines dropped", {&count, 1}, &line);
    line += '\n';
    return std::string(line.view());
  };
  process_sink = std::make_shared<LogSink>(STDERR_FILENO, kMostWaitingBytes, dropped_line, kGather);
  auto logger = std::make_shared<spdlog::logger>("tilewired", process_sink);
  logger->set_formatter(std::make_unique<LineFormatter>(line_format));
  logger->flush_on(level_enum::critical);  // what may be the last words
  level_enum threshold = spdlog::level::info;
  for (level_enum known : {level_enum::trace, level_enum::debug, level_enum::warn, level_enum::err}) {
    if (level == LevelName(known)) threshold = known;
  }
  logger->set_level(threshold);
  // A logging failure (stderr gone) must not become a flood or an exception.
  logger->set_error_handler([](const std::string&) {});
  spdlog::set_default_logger(std::move(logger));
}

void FlushLog() {
  if (process_sink) process_sink->flush();
}

uint64_t DroppedLogLines() {
  return process_sink ? process_sink->dropped() : 0;
}

void LogEvent(level_enum level, std::string_view msg, std::span<const Field> fields,
              spdlog::log_clock::time_point time) {
  auto* logger = spdlog::default_logger_raw();
  if (logger == nullptr || !logger->should_log(level)) return;
  const auto outer = std::exchange(current_fields, fields);
  logger->log(time, spdlog::source_loc{}, level, spdlog::string_view_t(msg.data(), msg.size()));
  current_fields = outer;
}

void LogEvent(level_enum level, std::string_view msg, std::span<const Field> fields) {
  if (spdlog::should_log(level)) LogEvent(level, msg, fields, spdlog::log_clock::now());
}

void LogEvent(level_enum level, std::string_view msg, std::initializer_list<Field> fields) {
  LogEvent(level, msg, std::span<const Field>(fields.begin(), fields.size()));
}

}  // namespace tilewire::ops

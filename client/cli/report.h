// What the program prints: values, errors, timing, progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "client/cpp/client.h"

namespace tilewire::cli {

/// Exit codes of the program.
inline constexpr int kExitOk = 0, kExitFailed = 1, kExitUsage = 2, kExitAbove = 3;

/// "--timeout of 0.3 s passed".
std::string TimeoutPassed(std::chrono::milliseconds timeout);

/// The fields of tilewire.v1.Timing by name, absent ones left out, and client_wall_us, attempts and streamed.
nlohmann::ordered_json JsonTiming(const client::Reply& reply);
nlohmann::ordered_json JsonShape(const Shape& shape);

/// Writes `text` to stdout and checks that it arrived. kExitOk or kExitFailed.
int Print(const std::string& text);
/// "error: STATUS_NAME: message" on stderr; returns `exit_code`.
int PrintError(const Status& status, int exit_code = kExitFailed);
/// The timing table on stderr.
void PrintTiming(const client::Reply& reply);

/// One line on stderr that tells how far a streamed call is; nothing where stderr is no terminal. Not
/// thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  /// Wipes the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Update(const client::Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_, shown_ = false;
  Clock::time_point start_, last_;
};

}  // namespace tilewire::cli

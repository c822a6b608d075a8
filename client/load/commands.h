// The commands of `tilewire-load`. Each returns the program's exit code and prints its own errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/load/interrupt.h"
#include "client/load/results.h"
#include "client/load/study.h"

namespace tilewire::load {

inline constexpr int kExitGood = 0, kExitBad = 1, kExitUsage = 2, kExitRegression = 3, kExitUnreachable = 4;

/// Options that all commands with a server have.
struct Globals {
  std::string server = "localhost:50051";
  client::ConnectOptions connect;
  std::string json;  ///< file for the result, or empty
  std::string html;  ///< file for the page, or empty
};

struct RunArguments {
  std::string scenario;  ///< file
  std::optional<uint32_t> callers;
  std::optional<double> rate, seconds;
  std::optional<uint64_t> seed;
  bool ceilings = false;  ///< measure them first
};

struct CompareArguments {
  std::string a, b;  ///< files
  double threshold_percent = 10, tail_threshold_percent = 25;
  bool anyway = false;
};

int RunScenario(const Globals& globals, const RunArguments& arguments, const Interrupt& interrupt);
int RunStudyCommand(const Globals& globals, const StudyOptions& options, const Interrupt& interrupt);
int RunCeilings(const Globals& globals, const Interrupt& interrupt);
int RunCompare(const CompareArguments& arguments);

// What the commands share.

/// Describes the server; tries for some seconds. The exit code of a failure goes to `exit_code`.
std::optional<ServerFacts> Describe(const Globals& globals, client::Client* client, bool ceilings,
                                    const Interrupt& interrupt, int* exit_code);
/// kExitGood where the result files can be written, else the complaint is printed.
int CheckOutputs(const Globals& globals);
/// Prints the text and writes the files. `exit_code`, or kExitUsage where that failed.
int Publish(const Globals& globals, const nlohmann::ordered_json& result, int exit_code);

/// Says on stderr that so many arrays or regions stay at the server; nothing where none do.
void WarnOfLeft(size_t left);

/// Writes a JSON file, whole or not at all. kExitGood, or kExitUsage with the complaint printed.
int WriteJson(const std::string& path, const nlohmann::ordered_json& json);

/// One line on stderr, rewritten in place; nothing where that is no terminal. Not thread-safe.
class StatusLine {
 public:
  StatusLine();
  /// Wipes the line.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void Show(const std::string& text);

 private:
  const bool enabled_;
  bool shown_ = false;
};

}  // namespace tilewire::load

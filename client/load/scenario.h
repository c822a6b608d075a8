// What a load test does, as a scenario file says it. The format stands in README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/cpp/client.h"
#include "client/cpp/operations.h"
#include "client/load/generator.h"

namespace tilewire::load {

/// How a call's operands reach the server, and its result this process.
enum class Access : uint8_t { kUnary, kStream, kStriped, kResident, kRegion };
/// "unary", "stream", "striped", "resident", "region".
const char* Name(Access access);

/// Which operands of a call the server keeps.
enum class Stays : uint8_t { kNone, kReference, kAll };

/// One kind of call of the mix.
struct OperationSpec {
  std::string name;
  client::Operation operation;
  ArraySpec operand;  ///< of each operand
  std::vector<ArraySpec> results;
  Access access = Access::kStream;
  uint32_t connections = 1;  ///< of a call
  Stays resident = Stays::kNone;
  double weight = 1;

  const client::OperationInfo& info() const { return *client::FindOperation(*operation.descriptor); }
  /// Its command: "gaussian-pdf".
  const char* kind() const { return info().command.data(); }
  uint32_t operands() const { return static_cast<uint32_t>(operation.descriptor->operands.size()); }
  /// Whether the server keeps that operand: all but the first one are what that is held against.
  bool stays(uint32_t index) const {
    return resident == Stays::kAll || (resident == Stays::kReference && index > 0);
  }
  /// Of one call: operands that are not sent because the server has them.
  uint64_t resident_bytes() const {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < operands(); ++k)
      if (stays(k)) bytes += static_cast<uint64_t>(operand.bytes());
    return bytes;
  }
  /// Of one call: what passes through memory that is shared with the server.
  uint64_t region_bytes() const { return access == Access::kRegion ? bytes() : 0; }
  uint64_t result_bytes() const {
    uint64_t bytes = 0;
    for (const ArraySpec& result : results) bytes += static_cast<uint64_t>(result.bytes());
    return bytes;
  }
  /// Where a result begins when all of them lie in one region, and where the last one ends.
  uint64_t result_offset(size_t index) const {
    uint64_t offset = 0;
    for (size_t k = 0; k < index; ++k)
      offset += (static_cast<uint64_t>(results[k].bytes()) + kResultAlignment - 1) / kResultAlignment *
                kResultAlignment;
    return offset;
  }
  uint64_t result_area_bytes() const {
    return result_offset(results.size() - 1) + static_cast<uint64_t>(results.back().bytes());
  }
  /// Whether its results are little against its operands, so that sending these is what takes time.
  bool reduces() const { return 4 * result_bytes() < operands() * static_cast<uint64_t>(operand.bytes()); }
  /// Of one call: operands, wherever they are, and results.
  uint64_t bytes() const { return operands() * static_cast<uint64_t>(operand.bytes()) + result_bytes(); }
};

enum class ModeType : uint8_t { kClosed, kOpen, kRamp };

/// Loop and pace; as it stands where the file does not say.
struct Mode {
  ModeType type = ModeType::kClosed;
  uint32_t callers = 1;
  Arrivals arrivals = Arrivals::kPoisson;  ///< open, ramp
  double rate = 0;                         ///< open: calls a second; ramp: the first rate tried
  double max_rate = 0;                     ///< ramp: none higher is tried
  double bound_us = 0;                     ///< ramp: what `percentile` of the latency must keep
  double percentile = 99;
};

struct Scenario {
  std::string name;
  uint64_t seed = 1;
  Mode mode;
  double warmup_seconds = 1;
  std::optional<double> seconds;  ///< one of these three; ramp: seconds, of each step
  std::optional<uint64_t> requests;
  std::optional<StableRule> stable;
  double timeout_seconds = 30;  ///< of a call
  uint32_t inputs = 4;          ///< different data sets of each operation
  uint32_t channels = 0;        ///< connections that unary calls share, never 0 once parsed
  std::vector<OperationSpec> operations;
};

/// Reads a scenario. INVALID_ARGUMENT naming line, field, value and what is allowed, such as
/// "mix.json:7: operations[0].dtype is "f31"; allowed: bool, i8, …". `source` is the file's name.
Result<Scenario> ParseScenario(std::string_view text, const std::string& source);
/// Reads a file. NOT_FOUND where it cannot be read, else as ParseScenario.
Result<Scenario> LoadScenario(const std::string& path);
/// All of it, defaults filled in; reads back to the same scenario.
nlohmann::ordered_json ToJson(const Scenario& scenario);
/// The load that it asks for (a ramp: of one step, at its first rate).
LoadOptions OptionsOf(const Scenario& scenario);

}  // namespace tilewire::load

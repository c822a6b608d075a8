// The overlap study: one call at a time over way × block size × lanes × connections × array size, each with
// and without overlap, in turns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/load/results.h"
#include "client/load/service.h"

namespace tilewire::load {

/// How the arrays of a study's calls get to the server: sent with each call and back; in memory that is
/// shared with it; kept by it, the result coming back over the wire.
enum class Via : uint8_t { kWire, kRegion, kResident };
/// "wire", "region", "resident".
const char* Name(Via via);
/// "over the wire", "through shared memory", "from resident arrays".
std::string InWords(Via via);

struct StudyOptions {
  std::string operation{client::Operations().front().command};  ///< a command
  DType dtype = DType::kF32;
  std::vector<uint64_t> sizes;           ///< bytes of one operand, rounded to whole elements
  std::vector<Via> vias{Via::kWire};     ///< each once
  std::vector<uint32_t> connections{1};  ///< ways that use none, as regions, have one
  std::vector<uint64_t> blocks{0};       ///< 0: the server's choice
  std::vector<uint32_t> lanes{0};        ///< likewise
  double seconds = 1;                    ///< of a point, both ways together; four calls each way at least
  uint32_t inputs = 2;
  uint64_t seed = 1;
};

/// The call of a study at one size: a vector or, where the operation's row wants it, a matrix as square as
/// powers of two allow.
Result<OperationSpec> StudyOperation(const StudyOptions& options, uint64_t size);

/// That call with its arrays going another way.
OperationSpec Going(OperationSpec spec, Via via);

/// One configuration, with overlap or without.
struct StudyPoint {
  Via via = Via::kWire;
  uint64_t bytes = 0;  ///< of a call, operands and result
  Tuning tuning;
  CallStats stats;
  double seconds = 0;             ///< that its calls took
  std::vector<double> latencies;  ///< seconds, of its right answers, the first kMostLatencies
  bool overlap() const { return !tuning.sequential; }
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(stats.bytes) / seconds : 0; }
  /// Half of the interquartile range of its latencies over their median; none of under 4 calls.
  std::optional<double> noise() const;
};
inline constexpr size_t kMostLatencies = 1 << 16;

/// What to set, of one way.
struct Recommendation {
  Via via = Via::kWire;
  Tuning tuning;
  uint64_t bytes = 0;
  double bytes_per_second = 0, best_bytes_per_second = 0, serial_bytes_per_second = 0;
  std::optional<double> noise, serial_noise;  ///< of the rates with and without overlap
  std::string bottleneck;                     ///< a stage
};

/// Where a study is: `size` is the index into StudyOptions::sizes.
struct StudyPlace {
  size_t size = 0;
  Via via = Via::kWire;
};

/// What a study asks of a server.
struct StudyServer {
  /// Puts the operands where the calls find them, before any clock starts; empty: nothing is to be done.
  std::function<Status(const StudyPlace& place, const std::stop_token& stop)> prepare;
  std::function<Answer(const StudyPlace& place, uint32_t input, const Tuning& tuning,
                       const std::stop_token& stop)>
      call;
  /// The same with the first input, keeping its spans; empty: no call is traced.
  std::function<Answer(const StudyPlace& place, const Tuning& tuning, const std::stop_token& stop)> trace;
};

/// A typical call at the largest size with what is recommended there.
struct StudyTrace {
  StudyPlace place;
  bool overlap = true;
  client::Reply reply;
};

struct StudyResult {
  struct LeftOut {
    StudyPlace place;
    Status status;  ///< why it could not be prepared
  };
  std::vector<StudyPoint> points;  ///< with overlap, then without, of each configuration
  std::vector<LeftOut> left_out;
  std::vector<StudyTrace> traces;  ///< of each way, with overlap and without
  bool interrupted = false, lost = false;
};

/// Measures every configuration; each pair of calls, with and without overlap, comes right after the other,
/// so that a busy moment hits both. Answers are checked between calls. `on_point(done, all)` before each.
/// Ends early on `stop` and where the server cannot be reached; what cannot be prepared is left out.
StudyResult RunStudy(const StudyOptions& options, const StudyServer& server, const std::stop_token& stop,
                     const std::function<void(size_t done, size_t all)>& on_point = {});

/// Of one way, at the largest size that was measured: the configuration with the fewest connections, then the
/// fewest lanes, whose rate with overlap is within 3% of the best; the server's own choices count as least.
/// None where nothing was measured.
std::optional<Recommendation> Recommend(const std::vector<StudyPoint>& points, Via via);

/// Adds the traces of `place`, which is ready and was measured: a few calls each way in turns, of which the
/// one with the median latency is kept. False when the study must end.
bool TracePlace(const StudyServer& server, const StudyPlace& place, const std::stop_token& stop,
                StudyResult* result);

/// The stage that the server named most often; empty where it named none.
std::string BottleneckOf(const CallStats& stats);

/// The result of `tilewire-load study`; `operations` as StudyOperation made them.
nlohmann::ordered_json StudyJson(const StudyOptions& options, const std::vector<OperationSpec>& operations,
                                 const ServerFacts& server, const StudyResult& study,
                                 const std::string& started, double seconds);

}  // namespace tilewire::load

// The overlap study: one call at a time over block size × lanes × connections × array size, each with and
// without overlap, in turns.
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

struct StudyOptions {
  std::string operation{client::Operations().front().command};  ///< a command
  DType dtype = DType::kF32;
  std::vector<uint64_t> sizes;  ///< bytes of one operand, rounded to whole elements
  std::vector<uint32_t> connections{1};
  std::vector<uint64_t> blocks{0};  ///< 0: the server's choice
  std::vector<uint32_t> lanes{0};   ///< likewise
  double seconds = 1;               ///< of a point, both ways together; three calls each way at least
  uint32_t inputs = 2;
  uint64_t seed = 1;
};

/// The call of a study at one size: a vector or, where the operation's row wants it, a matrix as square as
/// powers of two allow.
Result<OperationSpec> StudyOperation(const StudyOptions& options, uint64_t size);

/// One configuration, one way.
struct StudyPoint {
  uint64_t bytes = 0;  ///< of a call, operands and result
  Tuning tuning;
  CallStats stats;
  double seconds = 0;  ///< that its calls took
  bool overlap() const { return !tuning.sequential; }
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(stats.bytes) / seconds : 0; }
};

/// What to set.
struct Recommendation {
  Tuning tuning;
  uint64_t bytes = 0;
  double bytes_per_second = 0, best_bytes_per_second = 0, serial_bytes_per_second = 0;
  std::string bottleneck;  ///< a stage
};

/// A call of the study: `size` is the index into StudyOptions::sizes.
using StudyCall =
    std::function<Answer(size_t size, uint32_t input, const Tuning& tuning, const std::stop_token& stop)>;

struct StudyResult {
  std::vector<StudyPoint> points;  ///< with overlap, then without, of each configuration
  bool interrupted = false, lost = false;
};

/// Measures every configuration; each pair of calls, with and without overlap, comes right after the other,
/// so that a busy moment hits both. `on_point(done, all)` before each. Ends early on `stop` and where the
/// server cannot be reached.
StudyResult RunStudy(const StudyOptions& options, const StudyCall& call, const std::stop_token& stop,
                     const std::function<void(size_t done, size_t all)>& on_point = {});

/// At the largest size that was measured: the configuration with the fewest connections, then the fewest
/// lanes, whose rate with overlap is within 3% of the best; the server's own choices count as least. None
/// where nothing was measured.
std::optional<Recommendation> Recommend(const std::vector<StudyPoint>& points);

/// The stage that the server named most often; empty where it named none.
std::string BottleneckOf(const CallStats& stats);

/// The result of `tilewire-load study`; `operations` as StudyOperation made them.
nlohmann::ordered_json StudyJson(const StudyOptions& options, const std::vector<OperationSpec>& operations,
                                 const ServerFacts& server, const StudyResult& study,
                                 const std::string& started, double seconds);

}  // namespace tilewire::load

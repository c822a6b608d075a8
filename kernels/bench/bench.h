// What a benchmark case is, and how cases plug in. Knows no CUDA types; host cases need only this header.
//
// To add cases: write `void AddSomethingCases(const CaseOptions&, std::vector<Case>*)`, declare it below and
// call it in registry.cc. Adding must be cheap and touch neither GPU nor memory (`--list` adds all of them);
// `Case::prepare` allocates, fills and builds a Work. The program then calls, on its main thread and one case
// at a time: prepare, Verify, and Run as often as the stopping rule (statistics.h) wants, cold and hot.
//
// Host cases (host_*.cc) run on threads of their own: the Work keeps them (start them in prepare, end them in
// its destructor) and Run returns when all of them are done; wall time of Run is what counts. One Case for
// each count in CaseOptions::threads where the count matters. The machine's limit for n threads is itself a
// case: it says `defines_limit = "host read, 8 threads"`, and the cases to be held against it say `limit =
// "host read, 8 threads"`. Such a limit is measured in the same run even where the filter leaves its case
// out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/status.h"

struct CUstream_st;  // of CUDA; cudaStream_t is a pointer to it

namespace tilewire::bench {

/// A CUDA stream; null for host cases.
using Stream = CUstream_st*;

/// Names of the device's measured limits, for Case::limit.
inline constexpr std::string_view kReadLimit = "device read";
inline constexpr std::string_view kCopyLimit = "device copy";

/// Where a case runs, and whose clock times it.
enum class Place : uint8_t { kHost, kDevice };

/// How right a result was. A wrong one is not a Check but a Status.
struct Check {
  enum class Kind : uint8_t {
    kExact,     ///< the very bits of the reference
    kRelative,  ///< a value within its tolerance: `relative_error` of the float64 reference
    kNothing,   ///< nothing is computed that could be wrong (a read-only kernel, an empty one)
  };
  Kind kind = Kind::kExact;
  double relative_error = 0;
};

/// A prepared case: owns its buffers (and threads). Used by one thread at a time.
class Work {
 public:
  virtual ~Work() = default;
  /// Runs once and compares with an independent reference. An error (code INTERNAL, or what went wrong) fails
  /// the case: it is not timed.
  virtual Result<Check> Verify(Stream stream) = 0;
  /// One run, the thing that is timed. On the host: everything is done on return. On the device: only
  /// enqueues on `stream`; no allocation and no waiting, so that it can be captured into a graph.
  virtual Status Run(Stream stream) = 0;
  /// Whether a CUDA graph of runs does the same as the runs. Not so with cudaMemcpyAsync, which a stream
  /// gives to the multiprocessors and a graph to a (slower) copy engine.
  virtual bool Replayable() const { return true; }
  /// Host cases: the memory that a cold run shall find in no cache. Unused on the device, whose whole L2 is
  /// flushed.
  virtual std::vector<std::span<const std::byte>> Touched() const { return {}; }
};

/// What is known of a case before it runs, and what the reports show of it.
struct CaseInfo {
  std::string group;           ///< "rmse"; one table, one chart
  std::string name;            ///< "f32/2048x2048"; unique in its group and implementation
  std::string implementation;  ///< "tilewire", "cub", "cublas", a ladder step's name, ...
  Place place = Place::kDevice;
  int64_t bytes = 0;           ///< that a run must read and write at least; 0: no rate is shown
  int64_t memory_bytes = 0;    ///< that prepare allocates at its place, all buffers together
  std::string limit;           ///< name of the limit that the rate is held against, or empty
  std::string defines_limit;   ///< the limit that this case measures, or empty; the fastest of several counts
  std::string dtype;           ///< "f32", or empty
  std::vector<int64_t> shape;  ///< of an operand, or empty
  std::vector<int32_t> axes;   ///< reduced axes, or the permutation, or empty
  std::string note;            ///< one sentence for people, or empty
  /// One of many of a random sample: the table shows the distribution instead of every line.
  bool sampled = false;
};

struct Case : CaseInfo {
  /// Allocates and fills. RESOURCE_EXHAUSTED and UNIMPLEMENTED skip the case by name, other errors fail it.
  std::function<Result<std::unique_ptr<Work>>(Stream)> prepare;
};

/// "rmse/f32/2048x2048/tilewire": what filters match and `--list` prints.
std::string FullName(const CaseInfo& info);

/// What the command line says about which cases there are.
struct CaseOptions {
  std::vector<int> threads = {1};  ///< thread counts of host cases, ascending
  int permutations = 200;          ///< random cases of group permute
  uint64_t seed = 1;               ///< of everything random
  std::string cublas;              ///< path of libcublas, or empty: the usual names
};

/// All cases in report order (registry.cc).
std::vector<Case> AllCases(const CaseOptions& options);

// One a group; each appends.
void AddHostCases(const CaseOptions& options,
                  std::vector<Case>* cases);  // host_*.cc; groups are named "host..."
void AddCopyCases(const CaseOptions& options, std::vector<Case>* cases);
void AddRmseCases(const CaseOptions& options, std::vector<Case>* cases);
void AddBatchedCases(const CaseOptions& options, std::vector<Case>* cases);
void AddLayoutCases(const CaseOptions& options, std::vector<Case>* cases);
void AddCompareCases(const CaseOptions& options, std::vector<Case>* cases);
void AddTransposeCases(const CaseOptions& options, std::vector<Case>* cases);
void AddPermuteCases(const CaseOptions& options, std::vector<Case>* cases);
void AddGaussianCases(const CaseOptions& options, std::vector<Case>* cases);
void AddLadderCases(const CaseOptions& options, std::vector<Case>* cases);

}  // namespace tilewire::bench

// What a job needs: how it lies in memory, and the pieces that makes. Pure: nothing is asked for or leased
// here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/admission/admission.h"
#include "server/engine/job/block_size.h"
#include "server/engine/job/options.h"
#include "server/engine/job/places.h"
#include "server/engine/measure/copy_rates.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// How a job lies in memory.
struct JobLayout {
  bool small = false;
  Places places;
  int64_t held_bytes = 0;        ///< by arrays that are operands, each once
  bool inputs_in_place = false;  ///< see JobShape
  bool packed_pinned = false;    ///< a small job's arrays lie in pinned memory
  bool on_host = false;          ///< and the host computes it
  int64_t block_bytes = 0;
  int streams = 1;
  int spare_blocks = 2;
  Ring ring;  ///< of a windowed job
};

/// The memory of a job, piece by piece: these are leased, and admission is asked for their sum, so that the
/// two cannot disagree.
struct MemoryPlan {
  enum class Use : uint8_t { kArrays, kStored, kInputBlocks, kOutputBlocks };
  struct Piece {
    Use use = Use::kArrays;
    bool pinned = false;  ///< else on the device
    int64_t bytes = 0;
    int64_t count = 1;  ///< of such pieces
  };
  /// Where an array begins.
  struct Place {
    int piece = -1;  ///< -1: in none of these
    int64_t offset = 0;
  };
  bool small = false;
  int64_t held_bytes = 0;  ///< as in Demand
  std::vector<Piece> pieces;
  std::vector<Place> places;  ///< operands in order, results in order, scratch

  Demand demand() const;
};

/// Blocks through which go the bytes that come or leave.
std::vector<MemoryPlan::Piece> StagingPieces(const Operation& operation, const JobLayout& layout);
MemoryPlan PlanMemory(const Operation& operation, const JobLayout& layout);

/// Decided before a job is admitted, leased when it is.
struct JobPlan {
  JobLayout layout;
  MemoryPlan memory;

  /// Uses of arrays and regions with it.
  JobShape TakeShape();
};

/// Thread-safe.
class Planner {
 public:
  struct Limits {
    int lanes = 1, max_streams = 1, spare_blocks = 2;
    BlockRule block;
    int64_t bulk_device_bytes = 0;  ///< that a bulk job may have
    int64_t pinned_bytes = 0;
    bool host_memory = false, kernels_reach_pinned = false;  ///< as in DeviceFacts
    int64_t host_bytes = 0;                                  ///< EngineOptions
  };

  explicit Planner(const Limits& limits) : limits_(limits) {}
  /// As measured; before the first job.
  void SetCopyRates(const CopyRates& rates) { copy_rates_ = rates; }

  /// The job's arrays whole where they fit, else in rings, and then `operation` is the windowed one; where
  /// that is impossible too, `why` says so. `places` as MakePlaces() has them.
  JobPlan Plan(OperationPtr* operation, const JobOptions& options, Places places, std::string* why) const;

 private:
  JobLayout LayoutOf(const Operation& operation, const JobOptions& options, Places places) const;
  void GrantStreams(const Operation& operation, int wanted, JobLayout* layout) const;
  Result<JobPlan> Windowed(const Operation& operation, const JobOptions& options, JobLayout layout) const;

  const Limits limits_;
  CopyRates copy_rates_;
};

}  // namespace tilewire::engine

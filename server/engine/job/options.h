// What a job is made of: how its caller wants it, what the engine leases to it, what all jobs share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "server/engine/admission/admission.h"
#include "server/engine/device/device.h"
#include "server/engine/job/places.h"
#include "server/engine/job/window.h"
#include "server/engine/measure/copy_rates.h"
#include "server/engine/operation/operation.h"
#include "server/engine/stores/array_store.h"
#include "server/engine/stores/region_store.h"

namespace tilewire::engine {

/// A run of a result's bytes on the host. Valid until the last copy of `hold` is gone; dropping it may free a
/// buffer and enqueue device work, so drop it on a thread that may do that (Engine::DropSoon).
struct OutputPiece {
  uint32_t result = 0;
  int64_t offset = 0;  ///< in that result
  const std::byte* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> hold;
};
/// The next piece, result after result; nothing after the last, once the input has ended too; or why the job
/// failed.
using OnOutput = std::function<void(Result<std::optional<OutputPiece>>)>;

/// How a job is to be run.
struct JobOptions {
  std::string identity = "anonymous";  ///< who owns it
  std::string share;                   ///< whose turns, places and rates it takes; empty: the identity's
  OwnLimits own;                       ///< of that share, instead of the engine's
  OwnQuota own_arrays;                 ///< of that identity, instead of the store's
  int streams = 1;                     ///< streams that the caller would like to spread it over
  bool may_window = false;  ///< it keeps to Job::window_bytes() and takes output while it brings input
  /// Where operands are sent, it has its memory once the first bytes of these are here (Job::Land), not when
  /// it is opened.
  bool lands = false;
  bool trace = false;       ///< keep every span
  int64_t block_bytes = 0;  ///< of one block; 0: what suits the operands
  int lanes = 0;            ///< at most so many; 0: all
  /// The thread that opens the job will bring all input, without waiting for anything, and call Job::Help(),
  /// or Await() where the job is awaited(): until then such a job wakes no lane's thread.
  bool helped = false;
  bool sequential = false;            ///< without overlap, whatever the engine does otherwise
  std::vector<ArrayUse> residents;    ///< [operand]: the resident array that it is, null: none; or empty
  std::vector<RegionPart> regions;    ///< [operand]: where in a region it lies, or none; or empty
  RegionPart result_region;           ///< where results are to be written instead of handed out
  std::optional<StoreOptions> store;  ///< keep the results on the device
  TimePoint arrived = Clock::now();   ///< origin of its spans
  TimePoint deadline = TimePoint::max();
};

/// What is decided of a job before it has any memory.
struct JobShape {
  int streams = 1;          ///< that may carry the job without waiting for each other's blocks
  int64_t block_bytes = 0;  ///< the unit of transfer of this job
  /// Operands lie where the host can write them: payloads go straight to their place.
  bool inputs_in_place = false;
  Ring ring;  ///< of a windowed job
  Places places;
  size_t input_blocks = 0, output_blocks = 0;  ///< of staging
};

/// What the engine leases to a job. Freed with the job, which is when nothing of it runs on the device any
/// more.
struct JobMemory {
  Ticket ticket;  // first, so that it is given back last
  std::vector<Memory> arrays;
  Buffers buffers;
  std::vector<Memory> input_blocks, output_blocks;
  std::vector<Memory> results;  ///< those that are to be stored
};

/// What all jobs of an engine share. Outlives every job.
struct JobContext {
  std::vector<Lane*> lanes;  ///< the job uses these in turn
  bool overlap = true;
  bool small = false;        ///< jobs are short: their callers may lend a hand (Job::Help)
  bool host_memory = false;  ///< lanes copy with the CPU
  std::string device_id;
  CopyRates copy_rates;  ///< zeros where none were measured
  std::function<Status()> device_health;
  std::function<void()> on_device_failure;
  std::function<void(int64_t blocks, int64_t bytes_in, int64_t bytes_out, int64_t ranges)> count;
  std::function<void(uint64_t bytes)> count_copied;
};

}  // namespace tilewire::engine

// Where a job's arrays lie: decided once, when the job is planned, and carried to all who ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/array/status.h"
#include "server/engine/operation/operation.h"
#include "server/engine/stores/array_store.h"
#include "server/engine/stores/region_store.h"

namespace tilewire::engine {

struct JobOptions;

/// An operand's bytes come over streams.
struct Streamed {};
/// It is a stored array,
struct Resident {
  ArrayUse array;
};
/// is copied from a region,
struct CopiedFrom {
  RegionPart part;
};
/// or lies in a region of device memory, where kernels read it.
struct ReadIn {
  RegionPart part;
};
using OperandPlace = std::variant<Streamed, Resident, CopiedFrom, ReadIn>;

/// Where the array lies that is there before any block comes; null: it arrives in blocks.
std::byte* DataThere(const OperandPlace& place);
inline bool Arrives(const OperandPlace& place) {
  return std::holds_alternative<Streamed>(place) || std::holds_alternative<CopiedFrom>(place);
}

/// The results are told piece by piece,
struct HandedOut {
  enum class From : uint8_t {
    kBlocks,   ///< copied to output blocks
    kInPlace,  ///< from where they lie, which the host can read
    kPinned,   ///< likewise: pinned memory, where kernels write them
  };
  From from = From::kBlocks;
};
/// stay on the device as arrays for which there is room,
struct Stored {
  std::shared_ptr<Reservation> room;
};
/// are stored already, so that nothing is left to do,
struct StoredBefore {
  std::vector<ArrayUse> arrays;
};
/// are copied to a region, each to its Problem::result_offset(),
struct CopiedTo {
  RegionPart part;
};
/// or are written there by kernels, into memory of the device.
struct WrittenIn {
  RegionPart part;
};
using ResultPlace = std::variant<HandedOut, Stored, StoredBefore, CopiedTo, WrittenIn>;

/// The part of a region that results go to, however; null: to none.
const RegionPart* RegionOf(const ResultPlace& place);

/// Of all arrays of a job. Copyable: uses are shared.
struct Places {
  std::vector<OperandPlace> operands;
  ResultPlace result;

  /// Operands that come in blocks; and those of them whose bytes come over streams.
  size_t arriving() const;
  size_t streamed() const;
  bool all_there() const { return arriving() == 0; }
  bool handed_out() const { return std::holds_alternative<HandedOut>(result); }
  bool handed_out_from(HandedOut::From from) const {
    const auto* out = std::get_if<HandedOut>(&result);
    return out && out->from == from;
  }
};

/// INVALID_ARGUMENT where a region does not hold what it is to, or a result would be written over an operand.
Status CheckPlaces(const Operation& operation, const JobOptions& options);

/// What `options` say, taken out of them; its lists are filled. What an operation only passes on is copied
/// from and to regions of whatever memory. `room`: null where results are not to be stored. From where they
/// are handed out is left to the planner.
Places MakePlaces(const Operation& operation, std::shared_ptr<Reservation> room, JobOptions* options);

}  // namespace tilewire::engine

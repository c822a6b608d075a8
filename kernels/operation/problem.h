// One operation on arrays of known shape: what it needs, how its work is cut, and how host code does it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/array/shape.h"
#include "kernels/operation/step.h"
#include "kernels/operation/team.h"

namespace tilewire {

struct Descriptor;

/// Every result begins at a multiple of this in the area that holds all of them.
inline constexpr int64_t kResultAlignment = 256;

/// Immutable, thread-safe. Made by Descriptor::Make.
class Problem {
 public:
  virtual ~Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  /// The operation that it is of; null where it is of none, and nothing of it is ever launched.
  const Descriptor* descriptor() const { return descriptor_; }
  virtual std::string_view name() const;             ///< "rmse"
  virtual std::string_view numeric_version() const;  ///< "rmse.1"

  // --- arrays ------------------------------------------------------------------------------------
  /// 1 to kMaxOperands, all of equally many bytes.
  virtual std::span<const ArraySpec> operands() const = 0;
  /// 1 to kMaxResults.
  virtual std::span<const ArraySpec> results() const = 0;
  /// The result of an operation that has one.
  const ArraySpec& result() const { return results().front(); }
  /// Where result `index` lies in the result area.
  int64_t result_offset(size_t index) const;
  /// Of the result area: to the end of the last result.
  int64_t result_bytes() const;
  /// Of the results alone, without what lies between them.
  int64_t payload_bytes() const;
  /// The result that byte `offset` of the result area lies in, or behind.
  size_t result_at(int64_t offset) const;
  /// The results of `buffers` in an area that begins at `area`.
  void PlaceResults(std::byte* area, Buffers* buffers) const;
  virtual int64_t scratch_bytes() const { return 0; }

  // --- ranges ------------------------------------------------------------------------------------
  virtual int64_t range_count() const = 0;
  /// Which bytes of every operand a range needs. Both ends never descend with the index.
  virtual ByteInterval range_bytes(int64_t index) const = 0;
  /// Whether there is work to launch once every range is done.
  virtual bool has_finish() const { return false; }
  /// True where the one range does the finish too: a piece of work that leaves the values which whoever asked
  /// is waiting for.
  virtual bool range_finishes() const { return false; }
  /// True when range k fills bytes range_bytes(k) of the one result and nothing else, so that output may
  /// leave early.
  virtual bool ranges_fill_result() const { return false; }
  /// True where the result is the operand itself, in the same memory: nothing is launched, and a range is
  /// done when its bytes are there.
  virtual bool result_is_operand() const { return false; }

  // --- work --------------------------------------------------------------------------------------
  /// Does the work of a step on host memory, shared with `team`. Operands, results and scratch are aligned to
  /// 16 bytes or more and do not overlap; of the operands only the range's bytes are read. (CUDA:
  /// operation_cuda.h.)
  virtual void RunHost(Step step, const Buffers& buffers, Team& team) const = 0;

  // --- other cuts of the same work, with the same bits --------------------------------------------
  /// As one range, one piece of work: for operands that are all there from the start. Null where it is best
  /// left as it is.
  virtual std::unique_ptr<Problem> Whole() const { return nullptr; }
  /// For a device that holds only some ranges at a time: sizes and ranges are these, but the buffers of a
  /// range point to that range's bytes alone, in the operands and, where ranges fill it, in the result.
  /// FAILED_PRECONDITION where ranges share bytes; the message says so to people.
  virtual Result<std::unique_ptr<Problem>> Windowed() const;

 protected:
  /// `descriptor` lives for ever.
  explicit Problem(const Descriptor* descriptor) : descriptor_(descriptor) {}
  static tl::unexpected<Status> NotWindowed(std::string_view why);

 private:
  const Descriptor* const descriptor_;
};

}  // namespace tilewire

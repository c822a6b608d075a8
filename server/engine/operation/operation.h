// What the job pipeline knows of an operation: sizes, ranges, and the work a range is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/array/shape.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {

/// Device addresses of a job's arrays.
struct Buffers {
  std::vector<std::byte*> operands;
  std::byte* result = nullptr;
  std::byte* scratch = nullptr;  ///< null when scratch_bytes() is 0
};

/// Bytes [begin, end).
struct ByteInterval {
  int64_t begin, end;
};

/// One operation on arrays of known shape. Immutable, thread-safe.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual std::string_view name() const = 0;             ///< "rmse"
  virtual std::string_view numeric_version() const = 0;  ///< "rmse.1"
  /// All operands of an operation have equally many bytes.
  virtual std::span<const ArraySpec> operands() const = 0;
  virtual const ArraySpec& result() const = 0;
  virtual int64_t scratch_bytes() const = 0;

  virtual int64_t range_count() const = 0;
  /// Which bytes of every operand a range needs. Both ends never descend with the index.
  virtual ByteInterval range_bytes(int64_t index) const = 0;
  virtual Work range_work(int64_t index, const Buffers& buffers) const = 0;
  /// Work to launch once every range is done, if any.
  virtual std::optional<Work> finish_work(const Buffers& buffers) const = 0;
  /// True when range k fills bytes range_bytes(k) of the result and nothing else, so that output may leave
  /// early.
  virtual bool ranges_fill_result() const = 0;

  /// True where the result is the operand itself, in the same memory: nothing is launched, and a range is
  /// done when its bytes are there.
  virtual bool result_is_operand() const { return false; }

  /// The same operation as one range, one piece of work: for operands that are all there from the start. Null
  /// where it is best left as it is.
  virtual std::unique_ptr<Operation> Whole() const { return nullptr; }
  /// The same operation for a device that holds only some ranges at a time (job/window.h): sizes and ranges
  /// are these, but `buffers` of range_work() point to that range's bytes alone, in the operands and, where
  /// ranges fill it, in the result. FAILED_PRECONDITION where ranges share bytes; the message says so to
  /// people.
  virtual Result<std::unique_ptr<Operation>> Windowed() const;
};

/// Takes a plan; INVALID_ARGUMENT from making the plan is the caller's to handle.
std::unique_ptr<Operation> MakeRmse(rmse::Plan plan);
std::unique_ptr<Operation> MakeTranspose(transpose::Plan plan);
std::unique_ptr<Operation> MakeGaussian(gaussian::Plan plan);
/// The operand as it is, as result: what puts an array and what gets one. `name` and `version` are told as
/// its own and live for ever.
std::unique_ptr<Operation> MakePass(const ArraySpec& spec, std::string_view name,
                                    std::string_view version = "");

}  // namespace tilewire::engine

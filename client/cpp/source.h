// Where operand bytes come from: a .npy file or memory of the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/cpp/file.h"
#include "kernels/array/shape.h"

namespace tilewire::client {

/// Bytes of an operand with whatever keeps them alive: they stay readable as long as `owner` (or, where it is
/// null, the memory that the caller gave) lives.
struct SourceSlice {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;
};

/// An array to send. A cheap value: copies share the file. Immutable and thread-safe; each call reads through
/// its own SourceReader.
class ArraySource {
 public:
  /// Opens a .npy file (see ParseNpyHeader and MappedFile::Open for the errors). Nothing but the header is
  /// read.
  static Result<ArraySource> OpenNpy(const std::string& path);
  /// C order bytes of the caller, `spec.bytes()` of them, which must stay until the call that uses them
  /// returned.
  static ArraySource FromMemory(const ArraySpec& spec, const void* data);

  /// dtype and shape, as the user sees the array.
  const ArraySpec& spec() const { return spec_; }
  /// Whether the bytes are stored column-major. Readers turn them around; see AsStored to avoid that.
  bool fortran_order() const { return fortran_order_; }
  /// The stored bytes as a C order array: for a Fortran order source that is the array with its axes
  /// reversed.
  ArraySource AsStored() const;

 private:
  friend class SourceReader;
  ArraySource(const ArraySpec& spec, const uint8_t* data) : spec_(spec), data_(data) {}

  ArraySpec spec_;
  const uint8_t* data_;
  bool fortran_order_ = false;
  std::shared_ptr<const MappedFile> file_;  ///< null for memory
};

/// Reads a source's bytes in C order. C order sources are never copied; Fortran order ones are turned around
/// a window of some 32 MiB at a time. Not thread-safe. Cheapest when offsets ascend.
class SourceReader {
 public:
  explicit SourceReader(ArraySource source) : source_(std::move(source)) {}

  /// Bytes [offset, offset + bytes) of the array in C order; both multiples of the element size, within the
  /// array.
  SourceSlice Slice(uint64_t offset, uint64_t bytes);
  /// Says that these bytes are not needed any more; drops pages of a mapped file now and then. Slices handed
  /// out before stay readable.
  void Done(uint64_t offset, uint64_t bytes);

 private:
  ArraySource source_;
  std::shared_ptr<const std::vector<uint8_t>> window_;  ///< converted bytes; Fortran order only
  uint64_t window_offset_ = 0;
  uint64_t done_begin_ = 0, done_end_ = 0;  ///< bytes done and not dropped yet
};

/// Copies elements [begin, end) (C order numbering) of a Fortran order array to `out`, C order. `in` points
/// to the whole array. Thread-safe.
void FortranToC(const ArraySpec& spec, const uint8_t* in, int64_t begin, int64_t end, uint8_t* out);

}  // namespace tilewire::client

// Where operands come from: a .npy file, memory of the caller, an array that the server keeps, or memory that
// is shared with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
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

/// Bytes of a region (region.h) from `offset` on.
struct RegionPlace {
  std::string region;  ///< id
  uint64_t offset = 0;
};

/// An operand. A cheap value: copies share the file. Immutable and thread-safe; each call reads local bytes
/// through its own SourceReader.
class ArraySource {
 public:
  /// Bytes that this process can read, and that cross the wire.
  struct Local {
    const uint8_t* data = nullptr;
    bool fortran_order = false;              ///< stored column-major
    std::shared_ptr<const MappedFile> file;  ///< null for memory of the caller
  };
  /// An array that the server keeps.
  struct Stored {
    std::string id;
  };
  /// Where the array is. Who needs to know asks with std::visit, so that a further kind is forgotten nowhere.
  using Place = std::variant<Local, Stored, RegionPlace>;

  /// Opens a .npy file (see ParseNpyHeader and MappedFile::Open for the errors). Nothing but the header is
  /// read.
  static Result<ArraySource> OpenNpy(const std::string& path);
  /// C order bytes of the caller, `spec.bytes()` of them, which must stay until the call that uses them
  /// returned.
  static ArraySource FromMemory(const ArraySpec& spec, const void* data);
  /// A resident array. What it is may be left open: then the server says so where it matters.
  static ArraySource Resident(std::string id, std::optional<ArraySpec> spec = std::nullopt);

  /// Bytes of a region that was registered with the server.
  static ArraySource Region(RegionPlace place, const ArraySpec& spec);

  const Place& place() const { return place_; }
  /// dtype and shape as the user sees the array; none where a resident array was named by its id alone.
  const std::optional<ArraySpec>& known_spec() const { return spec_; }
  /// The same, where it is known: always but for resident arrays.
  const ArraySpec& spec() const { return *spec_; }
  /// The bytes of it that a call sends.
  uint64_t wire_bytes() const;
  /// Whether the bytes are stored column-major. Readers turn them around; see AsStored to avoid that.
  bool fortran_order() const;
  /// The stored bytes as a C order array: for a Fortran order source that is the array with its axes
  /// reversed.
  ArraySource AsStored() const;

 private:
  ArraySource(std::optional<ArraySpec> spec, Place place)
      : spec_(std::move(spec)), place_(std::move(place)) {}

  std::optional<ArraySpec> spec_;
  Place place_;
};

/// Reads the bytes of a source that is Local in C order. C order sources are never copied; Fortran order ones
/// are turned around a window of some 32 MiB at a time. Not thread-safe. Cheapest when offsets ascend.
class SourceReader {
 public:
  explicit SourceReader(const ArraySource& source)
      : spec_(source.spec()), bytes_(std::get<ArraySource::Local>(source.place())) {}

  /// Bytes [offset, offset + bytes) of the array in C order; both multiples of the element size, within the
  /// array.
  SourceSlice Slice(uint64_t offset, uint64_t bytes);
  /// Says that these bytes are not needed any more; drops pages of a mapped file now and then. Slices handed
  /// out before stay readable.
  void Done(uint64_t offset, uint64_t bytes);

 private:
  ArraySpec spec_;
  ArraySource::Local bytes_;
  std::shared_ptr<const std::vector<uint8_t>> window_;  ///< converted bytes; Fortran order only
  uint64_t window_offset_ = 0;
  uint64_t done_begin_ = 0, done_end_ = 0;  ///< bytes done and not dropped yet
};

/// Copies elements [begin, end) (C order numbering) of a Fortran order array to `out`, C order. `in` points
/// to the whole array. Thread-safe.
void FortranToC(const ArraySpec& spec, const uint8_t* in, int64_t begin, int64_t end, uint8_t* out);

}  // namespace tilewire::client

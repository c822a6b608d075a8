// The .npy file format: reads headers of versions 1 to 3, writes version 1.
//
//   file    := magic "\x93NUMPY" major minor length header data
//   length  := u16 (major 1) or u32 (major 2, 3), little-endian
//   header  := "{'descr': D, 'fortran_order': True|False, 'shape': (…)}" padding "\n"
//   D       := a quoted type string such as '<f4', or a list (structured types, refused)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/array/shape.h"

namespace tilewire::client {

/// What stands before the data of a .npy file.
struct NpyHeader {
  ArraySpec spec;              ///< shape as the header states it, whichever order the bytes have
  bool fortran_order = false;  ///< the bytes are column-major
  uint64_t data_offset = 0;    ///< of the first data byte in the file
  int major_version = 1;       ///< 1, 2 or 3
};

/// Reads the header at the start of `prefix` (the file's first bytes: all of them, or at least 128 KiB).
/// `file_bytes` is the size of the whole file, so that missing data is noticed; bytes after the data are
/// allowed. INVALID_ARGUMENT, reason BAD_FILE, message beginning with `name`: no .npy file, damaged or too
/// long header, missing data, a dtype that Tilewire has no name for (big-endian, object, structured, strings,
/// dates, …), an array without elements. Any bytes are safe to pass. Thread-safe.
Result<NpyHeader> ParseNpyHeader(std::span<const uint8_t> prefix, uint64_t file_bytes, std::string_view name);

/// A version 1 header for a C order array, padded so that the data starts at a multiple of 64 bytes.
std::string FormatNpyHeader(const ArraySpec& spec);

/// The dtype that a .npy type string ("<f4", "=f4", "|V2") stands for, or why there is none: the Status
/// message is the reason in words ("big-endian dtype '>f4'"). Thread-safe.
Result<DType> ParseNpyDescr(std::string_view descr);

}  // namespace tilewire::client

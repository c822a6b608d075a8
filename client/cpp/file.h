// Files: a read-only memory map, and an output file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/array/status.h"

namespace tilewire::client {

/// A regular file mapped read-only. Immutable and thread-safe. The file must not shrink while it is mapped:
/// reading beyond its new end would end the process (SIGBUS), as with any memory map.
class MappedFile {
 public:
  /// NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (reason BAD_FILE), message beginning with the path.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Says that reading goes from front to back, so the kernel reads ahead.
  void AdviseSequential() const;
  /// Takes whole pages within bytes [offset, offset + bytes) off this process. Safe at any time: a later read
  /// finds the same bytes in the page cache or on disk again. Keeps the resident size small while a large
  /// file is sent.
  void Drop(uint64_t offset, uint64_t bytes) const;

 private:
  MappedFile(std::string path, const uint8_t* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const uint8_t* data_;
  size_t size_;
};

/// A file that appears under its name on Commit and leaves nothing behind otherwise. Until then its bytes
/// live in a nameless file of the same directory (or, where the file system has none, in a temporary one
/// beside it, which is unlinked by the destructor). An existing file is replaced atomically. Not thread-safe.
class OutputFile {
 public:
  /// Opens a place for `bytes` bytes beside `path`. Symbolic links are followed. Errors (reason BAD_FILE,
  /// message beginning with the path): the directory is missing or not writable, `path` exists and is not a
  /// writable regular file, no space left.
  static Result<OutputFile> Create(const std::string& path, uint64_t bytes);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  /// Writes all of `data` at `offset`.
  Status Write(uint64_t offset, std::span<const uint8_t> data);
  /// Makes the file appear under its name. Not synced to disk: a power cut right after may still lose it.
  Status Commit();

 private:
  OutputFile(std::string path, int fd, std::string temporary)
      : path_(std::move(path)), fd_(fd), temporary_(std::move(temporary)) {}

  std::string path_;       ///< final name, links followed
  int fd_;                 ///< −1 after a move
  std::string temporary_;  ///< name that must be unlinked; empty while the file has none
};

}  // namespace tilewire::client

// POSIX shared memory as a client makes it, for tests of regions.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace tilewire::testing {

inline const std::string kRegionPrefixText = "/tilewire-test-" + std::to_string(getpid()) + "-";
/// Of this process alone: tests count and remove what begins with it.
inline const char* const kRegionPrefix = kRegionPrefixText.c_str();

/// A name that no other test uses.
inline std::string SharedName() {
  static std::atomic<int> last{0};
  return kRegionPrefix + std::to_string(++last);
}

/// Shared memory under a name of its own, mapped for reading and writing; gone with this. Thread-compatible.
class SharedFile {
 public:
  explicit SharedFile(size_t bytes, mode_t mode = 0600) : name_(SharedName()), bytes_(bytes) {
    shm_unlink(name_.c_str());  // of a process that was killed and had this number
    descriptor_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, mode);
    EXPECT_GE(descriptor_, 0) << name_;
    Resize(bytes);
    data_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0));
    EXPECT_NE(data_, MAP_FAILED);
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() {
    munmap(data_, bytes_);
    close(descriptor_);
    shm_unlink(name_.c_str());
  }

  const std::string& name() const { return name_; }
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Write(size_t offset, const void* from, size_t bytes) { std::memcpy(data_ + offset, from, bytes); }
  std::string Read(size_t offset, size_t bytes) const {
    return std::string(reinterpret_cast<const char*>(data_) + offset, bytes);
  }
  /// Makes the object smaller or larger; the mapping stays as it is, so what is cut off must not be touched.
  void Resize(size_t bytes) { EXPECT_EQ(ftruncate(descriptor_, static_cast<off_t>(bytes)), 0); }
  /// The same by another process.
  void ResizeElsewhere(size_t bytes) {
    const std::string command = "truncate -s " + std::to_string(bytes) + " /dev/shm" + name_;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  void Unlink() { shm_unlink(name_.c_str()); }

 private:
  const std::string name_;
  const size_t bytes_;
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
};

}  // namespace tilewire::testing

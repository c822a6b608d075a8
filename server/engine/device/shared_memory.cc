#include "server/engine/device/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace tilewire::engine {
namespace {

constexpr int64_t kRegionRetryMs = 1000;
constexpr size_t kLongestName = NAME_MAX;  // the slash included, as shm_open counts

uint64_t PageSize() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

Status CannotOpen(const std::string& name, bool writable, int error) {
  const std::string what = "shared_memory.name " + name + " cannot be opened for " +
                           (writable ? "reading and writing: " : "reading: ") + ErrorText(error);
  const auto blame = [&](Code code, const char* reason, const char* allowed) {
    return Status({.code = code,
                   .reason = reason,
                   .message = what,
                   .field = "shared_memory.name",
                   .value = name,
                   .allowed = allowed});
  };
  switch (error) {
    case ENOENT:
      return blame(Code::kNotFound, "REGION", "the name of shared memory on the server's host");
    case EACCES:
    case EPERM:
      return blame(Code::kPermissionDenied, "REGION_ACCESS", "what the server's user may open");
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Busy(what, kRegionRetryMs);
    default:
      return blame(Code::kInvalidArgument, "BAD_VALUE", "the name of shared memory");
  }
}

/// The size of what is open, which must be memory: a pipe under such a name would block, a device answer
/// anything.
Result<uint64_t> SizeOf(int descriptor, const std::string& name) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))
    return BadValue("shared_memory.name", name + ", which is no shared memory", "the name of shared memory");
  return static_cast<uint64_t>(facts.st_size);
}

}  // namespace

bool IsSharedName(std::string_view name) {
  if (name.size() < 2 || name.size() > kLongestName || name[0] != '/') return false;
  const std::string_view rest = name.substr(1);
  return rest.find("..") == std::string_view::npos &&
         std::all_of(rest.begin(), rest.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '/'; });
}

Status RegionShrunk(const std::string& message) {
  return Status(Code::kFailedPrecondition, "REGION_SHRUNK", message);
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    descriptor_ = std::exchange(other.descriptor_, -1);
    pages_ = std::exchange(other.pages_, nullptr);
    page_bytes_ = other.page_bytes_;
    offset_ = other.offset_;
    page_offset_ = other.page_offset_;
    bytes_ = other.bytes_;
  }
  return *this;
}

void SharedMemory::Unmap() {
  if (pages_) munmap(pages_, page_bytes_);
  if (descriptor_ >= 0) close(descriptor_);
  pages_ = nullptr;
  descriptor_ = -1;
}

uint64_t SharedMemory::PageBytes(uint64_t offset, uint64_t bytes) {
  const uint64_t page = PageSize(), whole = offset % page + bytes;
  return (whole + page - 1) / page * page;
}

Result<SharedMemory> SharedMemory::Map(const std::string& name, uint64_t offset, uint64_t bytes,
                                       bool writable) {
  SharedMemory memory;
  // Not blocking: what has that name may be a pipe without a writer.
  memory.descriptor_ = shm_open(name.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK, 0);
  if (memory.descriptor_ < 0) return Fail(CannotOpen(name, writable, errno));
  TILEWIRE_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(memory.descriptor_, name));
  const std::string has = std::to_string(size) + " bytes, which is what " + name + " has";
  if (offset >= size) return BadValue("shared_memory.offset", std::to_string(offset), "less than " + has);
  if (bytes == 0 || bytes > size - offset)
    return BadValue("shared_memory.bytes", std::to_string(bytes),
                    "1 to " + std::to_string(size - offset) + ": offset and bytes within " + has);
  memory.offset_ = static_cast<int64_t>(offset);
  memory.page_offset_ = static_cast<int64_t>(offset - offset % PageSize());
  memory.bytes_ = static_cast<int64_t>(bytes);
  memory.page_bytes_ = PageBytes(offset, bytes);
  void* const pages = mmap(nullptr, memory.page_bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                           MAP_SHARED | MAP_NORESERVE, memory.descriptor_, memory.page_offset_);
  if (pages == MAP_FAILED) return Fail(CannotOpen(name, writable, errno));
  memory.pages_ = static_cast<std::byte*>(pages);
  return memory;
}

Status SharedMemory::Check() const {
  struct stat facts {};
  if (fstat(descriptor_, &facts) == 0 && facts.st_size >= offset_ + bytes_) return {};
  return RegionShrunk("the region's shared memory has " + std::to_string(facts.st_size) +
                      " bytes now; the region ends at byte " + std::to_string(offset_ + bytes_));
}

}  // namespace tilewire::engine

#include "client/cpp/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tilewire::client {
namespace {

Status FileError(const std::string& path, const std::string& what, Code code = Code::kInvalidArgument) {
  return Status(code, "BAD_FILE", path + ": " + what);
}

Status SystemError(const std::string& path, int error) {
  const Code code = error == ENOENT || error == ENOTDIR                     ? Code::kNotFound
                    : error == EACCES || error == EPERM || error == EROFS   ? Code::kPermissionDenied
                    : error == ENOSPC || error == EDQUOT || error == EMFILE ? Code::kResourceExhausted
                                                                            : Code::kInvalidArgument;
  return FileError(path, std::strerror(error), code);
}

/// Closes on scope exit.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// The name to write: links followed, and nothing but a writable regular file may be there already. Renaming
/// over a device such as /dev/null would replace it.
Result<std::string> ResolveTarget(const std::string& path) {
  struct stat info {};
  std::string target = path;
  if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    std::error_code error;
    target = std::filesystem::canonical(path, error).string();
    if (error) return Fail(FileError(path, "is a link to nowhere", Code::kNotFound));
  }
  if (::stat(target.c_str(), &info) != 0) {
    if (errno == ENOENT && !target.empty() && target.back() != '/') return target;
    return Fail(SystemError(path, errno));
  }
  if (S_ISDIR(info.st_mode)) return Fail(FileError(path, "is a directory"));
  if (!S_ISREG(info.st_mode)) return Fail(FileError(path, "is not a regular file"));
  if (::access(target.c_str(), W_OK) != 0) return Fail(SystemError(path, errno));
  return target;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// A new file beside `target` that has a name; returns −1 and errno otherwise.
int MakeNamed(const std::string& target, std::string* name) {
  *name = target + ".partXXXXXX";
  const int fd = ::mkostemp(name->data(), O_CLOEXEC);
  if (fd < 0) return fd;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd, 0666 & ~mask) != 0) { /* some file systems have no modes: the file is still right */
  }
  return fd;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return Fail(SystemError(path, errno));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return Fail(SystemError(path, errno));
  if (S_ISDIR(info.st_mode)) return Fail(FileError(path, "is a directory"));
  if (!S_ISREG(info.st_mode)) return Fail(FileError(path, "is not a regular file"));
  const auto size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED) return Fail(SystemError(path, errno));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, static_cast<const uint8_t*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::AdviseSequential() const {
  if (size_ > 0) ::madvise(const_cast<uint8_t*>(data_), size_, MADV_SEQUENTIAL);
}

void MappedFile::Drop(uint64_t offset, uint64_t bytes) const {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (offset >= size_ || bytes == 0) return;
  const uint64_t begin = (offset + page - 1) / page * page;
  const uint64_t end = (bytes > size_ - offset ? size_ : offset + bytes) / page * page;
  if (begin < end) ::madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Result<OutputFile> OutputFile::Create(const std::string& path, uint64_t bytes) {
  TILEWIRE_ASSIGN_OR_RETURN(std::string target, ResolveTarget(path));
  std::string temporary;
  int fd = ::open(DirectoryOf(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  // Which error tells "no nameless files here" differs by file system, so any error gets the second way.
  if (fd < 0) fd = MakeNamed(target, &temporary);
  if (fd < 0) return Fail(SystemError(path, errno));
  OutputFile file(std::move(target), fd, std::move(temporary));
  if (bytes > 0 && ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT) return Fail(SystemError(path, errno));
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return Fail(SystemError(path, errno));
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      temporary_(std::exchange(other.temporary_, std::string())) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::Write(uint64_t offset, std::span<const uint8_t> data) {
  while (!data.empty()) {
    const ssize_t written = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(path_, written < 0 ? errno : EIO);
    offset += static_cast<uint64_t>(written);
    data = data.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status OutputFile::Commit() {
  if (temporary_.empty()) {
    // linkat cannot replace a file, so the nameless one gets a passing name first. The name is unique: the
    // process and the descriptor are in it.
    const std::string name = path_ + ".part" + std::to_string(::getpid()) + "-" + std::to_string(fd_);
    const std::string self = "/proc/self/fd/" + std::to_string(fd_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return SystemError(path_, errno);
    temporary_ = name;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return SystemError(path_, errno);
  temporary_.clear();
  return {};
}

}  // namespace tilewire::client

#include "client/cpp/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <random>
#include <system_error>

#include "client/cpp/client_impl.h"

namespace tilewire::client {
namespace {

constexpr auto kUnregisterPatience = std::chrono::seconds(2);
constexpr int64_t kRetryAfterMs = 1000;

Status NoMemory(uint64_t bytes, int error) {
  return Busy(
      "shared memory of " + std::to_string(bytes) + " bytes: " + std::generic_category().message(error),
      kRetryAfterMs);
}

/// A name that nobody else has.
std::string NameOf(const std::string& prefix) {
  std::random_device random;
  std::string name = prefix.empty() ? "/tilewire-" : prefix;
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[random() % 16];
  return name;
}

Status Unregister(const Link& link, const std::string& id) {
  CallOptions options;
  options.timeout = kUnregisterPatience;
  v1::UnregisterRequest request;
  request.set_region(id);
  v1::UnregisterResponse response;
  return CallOnce(link, link.regions.get(), &v1::Regions::Stub::Unregister, request, options,
                  DeadlineOf(options), &response);
}

}  // namespace

SharedRegion::~SharedRegion() {
  try {
    (void)Unregister();
  } catch (...) {  // nobody is left to tell
  }
  if (data_) munmap(data_, bytes_);
}

DeviceRegion::~DeviceRegion() {
  try {
    (void)Unregister();
  } catch (...) {  // nobody is left to tell
  }
}

DeviceRegion& DeviceRegion::operator=(DeviceRegion&& other) noexcept {
  if (this == &other) return *this;
  DeviceRegion old;  // what was here, gone at the end
  std::swap(old.id_, id_);
  std::swap(old.unregister_, unregister_);
  id_ = std::exchange(other.id_, {});
  bytes_ = std::exchange(other.bytes_, 0);
  unregister_ = std::exchange(other.unregister_, nullptr);
  return *this;
}

Status DeviceRegion::Unregister() {
  const auto unregister = std::exchange(unregister_, nullptr);
  return unregister ? unregister(id_) : Status();
}

SharedRegion& SharedRegion::operator=(SharedRegion&& other) noexcept {
  const auto swap = [](SharedRegion* a, SharedRegion* b) {
    std::swap(a->id_, b->id_);
    std::swap(a->data_, b->data_);
    std::swap(a->bytes_, b->bytes_);
    std::swap(a->unregister_, b->unregister_);
  };
  SharedRegion old;  // what was here, gone at the end
  swap(this, &old);
  swap(this, &other);
  return *this;
}

Status SharedRegion::Unregister() {
  const Unregisterer unregister = std::exchange(unregister_, nullptr);
  return unregister ? unregister(id_) : Status();
}

Result<SharedRegion> SharedRegion::Make(const std::string& name, uint64_t bytes, unsigned permissions) {
  if (bytes == 0 || bytes > static_cast<uint64_t>(std::numeric_limits<off_t>::max()))
    return BadValue("bytes", std::to_string(bytes), "1 or more, and what this machine has");
  const int descriptor = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) return Fail(NoMemory(bytes, errno));
  // Taken now: memory that turns out to be missing when it is first touched would end the process.
  int error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error == 0 && fchmod(descriptor, permissions) != 0) error = errno;
  void* data = MAP_FAILED;
  if (error == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) error = errno;
  }
  close(descriptor);
  if (error != 0) {
    shm_unlink(name.c_str());
    return Fail(NoMemory(bytes, error));
  }
  SharedRegion region;
  region.data_ = static_cast<uint8_t*>(data);
  region.bytes_ = bytes;
  return region;
}

Result<SharedRegion> Client::Share(uint64_t bytes, const RegionOptions& how, const CallOptions& options) {
  std::string prefix = how.prefix;
  if (prefix.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(const ServerInfo info, Describe(options));
    prefix = info.region_prefix;
  }
  const std::string name = NameOf(prefix);
  TILEWIRE_ASSIGN_OR_RETURN(SharedRegion region, SharedRegion::Make(name, bytes, how.permissions));
  v1::RegisterRequest request;
  request.mutable_shared_memory()->set_name(name);
  request.mutable_shared_memory()->set_bytes(bytes);
  request.set_writable(how.writable);
  request.set_ttl_seconds(how.seconds);
  v1::RegionInfo info;
  const auto link = impl_->shared_link();
  const Status status = CallOnce(*link, link->regions.get(), &v1::Regions::Stub::Register, request, options,
                                 DeadlineOf(options), &info);
  shm_unlink(name.c_str());  // the server holds the memory now, or will never
  TILEWIRE_RETURN_IF_ERROR(status);
  region.id_ = info.region();
  region.unregister_ = [link](const std::string& id) { return client::Unregister(*link, id); };
  return region;
}

Result<DeviceRegion> Client::RegisterDevice(const DeviceMemory& memory, const DeviceRegionOptions& how,
                                            const CallOptions& options) {
  v1::RegisterRequest request;
  request.mutable_device_memory()->set_handle(memory.handle);
  request.mutable_device_memory()->set_offset(memory.offset);
  request.mutable_device_memory()->set_bytes(memory.bytes);
  request.mutable_device_memory()->set_device(memory.device);
  request.set_writable(how.writable);
  request.set_ttl_seconds(how.seconds);
  v1::RegionInfo info;
  const auto link = impl_->shared_link();
  TILEWIRE_RETURN_IF_ERROR(CallOnce(*link, link->regions.get(), &v1::Regions::Stub::Register, request,
                                    options, DeadlineOf(options), &info));
  DeviceRegion region;
  region.id_ = info.region();
  region.bytes_ = memory.bytes;
  region.unregister_ = [link](const std::string& id) { return client::Unregister(*link, id); };
  return region;
}

Result<Reply> Client::ExecuteInto(const Operation& operation, std::span<const ArraySource> operands,
                                  const RegionPlace& place, const CallOptions& options) {
  return impl_->Execute(operation, operands, std::nullopt, place, {}, options);
}

}  // namespace tilewire::client

// Arrays that stay at the server: stored once, operands of many calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/source.h"
#include "kernels/array/shape.h"
#include "kernels/array/status.h"

namespace tilewire::client {

/// How the server keeps an array.
struct StoreOptions {
  double seconds = 0;      ///< until it expires, 0.001 to the server's longest; 0: the server's default
  bool evictable = false;  ///< it may go before that when its memory is needed
  /// 1 to 128 visible ASCII characters: while an array that the same caller stored with the same key is
  /// there, that one is returned and nothing is stored or computed again. Empty: one is made up for the call,
  /// so that its own retries store once.
  std::string idempotency_key;
};

/// What a server knows of an array; see tilewire.v1.ArrayInfo.
struct ArrayInfo {
  std::string id;
  ArraySpec spec;
  uint64_t device_bytes = 0;  ///< that it holds, as the server's allocator rounds them
  std::string device;         ///< "cuda:0"
  bool evictable = false;
  double age_seconds = 0, expires_seconds = 0;  ///< since it was stored, until it expires
  double idle_seconds = 0;                      ///< since a job last used it, or since it was stored
  uint32_t users = 0;                           ///< jobs that use it now
};

/// The arrays of a caller.
struct ArrayList {
  std::vector<ArrayInfo> arrays;  ///< oldest first
  /// Device bytes that are held, also for arrays on their way and forgotten ones that jobs still use; and how
  /// many may be.
  uint64_t stored_bytes = 0, quota_bytes = 0;
};

/// A resident array that goes with this object, or with Release() stays. Move-only; may outlive the Client
/// that made it. Not thread-safe, but for the const methods; calls that use source() while the array is
/// deleted finish.
class OwnedArray {
 public:
  /// Deletes the array of that id at the server.
  using Deleter = std::function<Status(const std::string& id)>;

  OwnedArray() = default;
  OwnedArray(std::string id, const ArraySpec& spec, Deleter deleter)
      : id_(std::move(id)), spec_(spec), deleter_(std::move(deleter)) {}
  /// Deletes the array as well as it can be done within two seconds. Where that fails, the server forgets the
  /// array when its time is over.
  ~OwnedArray();
  OwnedArray(OwnedArray&& other) noexcept { *this = std::move(other); }
  OwnedArray& operator=(OwnedArray&& other) noexcept;

  /// Whether there is an array to delete.
  explicit operator bool() const { return !id_.empty(); }
  const std::string& id() const { return id_; }
  const ArraySpec& spec() const { return spec_; }
  /// The array as an operand.
  ArraySource source() const { return ArraySource::Resident(id_, spec_); }

  /// Gives the array up, without deleting it: its id.
  std::string Release();
  /// Deletes the array now and says what came of it; OK where there is none. Afterwards there is none.
  Status Delete();

 private:
  std::string id_;
  ArraySpec spec_;
  Deleter deleter_;
};

}  // namespace tilewire::client

// The arrays that the fake server keeps. Nobody owns them: whoever knows an id may use it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tests/unit/client_fake_compute.h"
#include "tests/unit/client_fake_reply.h"
#include "tilewire/v1/arrays.pb.h"

namespace tilewire::client::testing {

struct FakeArray {
  ArraySpec spec;
  std::string bytes;
  v1::Store how;
};

/// Thread-safe.
class FakeArrays {
 public:
  /// Its id; with a key that another array was stored with, the id of that one.
  std::string Keep(const v1::Store& how, const ArraySpec& spec, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, array] : arrays_)
      if (!how.idempotency_key().empty() && array.how.idempotency_key() == how.idempotency_key())
        return Id(number);
    arrays_[++last_] = {spec, bytes, how};
    return Id(last_);
  }
  std::optional<FakeArray> Find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = arrays_.find(Number(id));
    return found == arrays_.end() ? std::nullopt : std::optional(found->second);
  }
  bool Delete(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return arrays_.erase(Number(id)) > 0;
  }
  static void Fill(const std::string& id, const FakeArray& array, v1::ArrayInfo* info) {
    info->set_array(id);
    WriteSpec(array.spec, info->mutable_spec());
    info->set_device_bytes(array.bytes.size() + 7);
    info->set_device("cpu");
    info->set_evictable(array.how.evictable());
    info->set_age_seconds(1.5);
    info->set_expires_seconds(array.how.ttl_seconds() > 0 ? array.how.ttl_seconds() : 3600);
    info->set_idle_seconds(0.5);
    info->set_users(2);
  }
  /// Pages of `page_size` arrays; tokens are the numbers they begin at.
  void List(uint32_t page_size, const std::string& page, v1::ListResponse* response) const {
    const std::lock_guard lock(mutex_);
    for (auto at = arrays_.lower_bound(page.empty() ? 0 : std::stoi(page)); at != arrays_.end(); ++at) {
      if (static_cast<uint32_t>(response->arrays_size()) == page_size) {
        response->set_next_page(std::to_string(at->first));
        break;
      }
      Fill(Id(at->first), at->second, response->add_arrays());
    }
    response->set_stored_bytes(1000);
    response->set_quota_bytes(4000);
  }
  static grpc::Status NotFound(const std::string& id, const std::string& field) {
    return WithDetails(grpc::NOT_FOUND, field + " is " + id + "; allowed: one of the caller's arrays",
                       "ARRAY", {{"field", field}, {"value", id}, {"allowed", "one of the caller's arrays"}});
  }

 private:
  static std::string Id(int number) { return "fake-array-" + std::to_string(number); }
  static int Number(const std::string& id) {
    return id.starts_with("fake-array-") ? std::atoi(id.c_str() + 11) : 0;
  }

  mutable std::mutex mutex_;
  int last_ = 0;
  std::map<int, FakeArray> arrays_;
};

}  // namespace tilewire::client::testing

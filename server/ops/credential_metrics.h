// Whether the files by which callers are known can be used, and until when, for Prometheus.
#pragma once

#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include "server/rpc/identity/credential_files.h"

namespace tilewire::ops {

/// Has no samples before Set(): servers without such files have none. Thread-safe.
class CredentialMetrics {
 public:
  /// The registry outlives it.
  explicit CredentialMetrics(prometheus::Registry* registry);
  void Set(const rpc::CredentialState& state);

 private:
  prometheus::Family<prometheus::Gauge>&refused_, &certificate_ends_;
};

}  // namespace tilewire::ops

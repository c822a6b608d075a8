// Memory, descriptors, time and start of this process, for Prometheus.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/ops/audit_log.h"

namespace tilewire::ops {

/// What /proc says; each is -1 where it cannot be read.
struct ProcessStats {
  int64_t resident_bytes = -1;
  int64_t open_files = -1;
  int64_t max_open_files = -1;
  double cpu_seconds = -1;         ///< user and system, all threads
  double start_time_seconds = -1;  ///< since 1970-01-01 UTC
};

ProcessStats ReadProcessStats();

/// Reads at each scrape; what cannot be read is left out. Thread-safe.
class ProcessMetrics : public prometheus::Collectable {
 public:
  /// `audit` may be null.
  explicit ProcessMetrics(std::shared_ptr<const AuditLog> audit) : audit_(std::move(audit)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::shared_ptr<const AuditLog> audit_;
};

}  // namespace tilewire::ops

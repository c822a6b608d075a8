// The engine's gauges and counters for Prometheus, read when it asks.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <vector>

#include "server/base/stats.h"

namespace tilewire::ops {

/// A family with one sample, without labels.
prometheus::MetricFamily GaugeFamily(std::string name, std::string help, double value);
prometheus::MetricFamily CounterFamily(std::string name, std::string help, double value);

/// Takes a snapshot at each scrape. Thread-safe where the function is.
class EngineMetrics : public prometheus::Collectable {
 public:
  explicit EngineMetrics(std::function<EngineStats()> stats) : stats_(std::move(stats)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::function<EngineStats()> stats_;
};

}  // namespace tilewire::ops

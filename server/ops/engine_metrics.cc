#include "server/ops/engine_metrics.h"

#include <utility>

namespace tilewire::ops {

prometheus::MetricFamily GaugeFamily(std::string name, std::string help, double value) {
  prometheus::MetricFamily family{std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
  family.metric.emplace_back().gauge.value = value;
  return family;
}

prometheus::MetricFamily CounterFamily(std::string name, std::string help, double value) {
  prometheus::MetricFamily family{std::move(name), std::move(help), prometheus::MetricType::Counter, {}};
  family.metric.emplace_back().counter.value = value;
  return family;
}

std::vector<prometheus::MetricFamily> EngineMetrics::Collect() const {
  const EngineStats stats = stats_();
  std::vector<prometheus::MetricFamily> families;
  auto gauge = [&](const char* name, const char* help, auto value) {
    families.push_back(GaugeFamily(std::string("tilewire_") + name, help, static_cast<double>(value)));
  };
  auto counter = [&](const char* name, const char* help, auto value) {
    families.push_back(CounterFamily(std::string("tilewire_") + name, help, static_cast<double>(value)));
  };
  gauge("device_budget_bytes", "Device memory that jobs and arrays may lease", stats.device_bytes);
  gauge("device_used_bytes", "Device memory that jobs and arrays lease now", stats.device_bytes_in_use);
  gauge("device_cached_bytes", "Device memory kept for reuse that nobody leases", stats.device_bytes_cached);
  gauge("arrays_stored", "Resident arrays", stats.arrays_stored);
  gauge("array_bytes", "Device memory that resident arrays hold", stats.array_bytes);
  gauge("array_budget_bytes", "Device memory that resident arrays may hold", stats.array_bytes_most);
  gauge("regions", "Registered regions of clients' memory", stats.regions);
  gauge("region_bytes", "Clients' memory that regions hold", stats.region_bytes);
  gauge("region_budget_bytes", "Clients' memory that regions may hold", stats.region_bytes_most);
  gauge("pinned_budget_bytes", "Pinned host memory that jobs may lease", stats.pinned_bytes);
  gauge("pinned_used_bytes", "Pinned host memory that jobs lease now", stats.pinned_bytes_in_use);
  gauge("jobs_in_flight", "Jobs admitted and not yet ended", stats.jobs_in_flight);
  gauge("jobs_queued", "Jobs waiting for admission", stats.jobs_queued);
  gauge("jobs_open", "Jobs opened of which no byte has come; they hold no memory", stats.jobs_open);
  gauge("device_failed", "1 after a fatal device error, else 0", stats.device_failed ? 1 : 0);
  counter("jobs_admitted_total", "Jobs admitted", stats.jobs_admitted);
  counter("jobs_windowed_total", "Jobs admitted whose arrays did not fit", stats.jobs_windowed);
  counter("jobs_on_host_total", "Jobs admitted that the host computed beside a GPU, see --host-bytes",
          stats.jobs_on_host);
  counter("arrays_evicted_total", "Arrays gone because their memory was needed", stats.arrays_evicted);
  counter("arrays_expired_total", "Arrays gone because their time was over", stats.arrays_expired);
  counter("regions_expired_total", "Regions gone because nobody used them", stats.regions_expired);
  counter("blocks_copied_total", "Blocks copied into place", stats.blocks_copied);
  counter("ranges_computed_total", "Ranges computed", stats.ranges_computed);
  counter("copied_in_bytes_total", "Bytes copied to the device", stats.bytes_copied_in);
  counter("copied_out_bytes_total", "Bytes copied from the device", stats.bytes_copied_out);

  counter("copied_bytes_total", "Array bytes that the CPU copied, out of messages and into them",
          stats.bytes_copied_by_cpu);

  prometheus::MetricFamily refused =
      CounterFamily("tilewire_jobs_refused_total", "Jobs refused at admission, by reason",
                    static_cast<double>(stats.jobs_refused_busy));
  refused.metric[0].label = {{"reason", "BUSY"}};
  prometheus::ClientMetric& limit = refused.metric.emplace_back();
  limit.counter.value = static_cast<double>(stats.jobs_refused_limit);
  limit.label = {{"reason", "LIMIT"}};
  families.push_back(std::move(refused));
  return families;
}

}  // namespace tilewire::ops

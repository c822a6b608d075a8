// Prometheus metrics and the access log: what the rpc layer tells about calls, what the engine and the
// process say when asked. Names are tilewire_*, units last; every label has a fixed set of values, so that no
// client can make new series.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/stats.h"
#include "server/base/timing.h"
#include "server/ops/audit_log.h"
#include "server/ops/credential_metrics.h"
#include "server/ops/engine_metrics.h"
#include "server/ops/failure_fold.h"
#include "server/ops/process_metrics.h"
#include "server/rpc/calls/observer.h"

namespace tilewire::ops {

/// Values of the labels. A method, operation or reason that is not among them counts as "other"; an operation
/// or reason that is empty as "none".
inline constexpr std::array<std::string_view, 19> kMethodLabels{"Kernels.Rmse",
                                                                "Kernels.Transpose",
                                                                "Kernels.GaussianPdf",
                                                                "Kernels.Compute",
                                                                "Kernels.Execute",
                                                                "Arrays.Put",
                                                                "Arrays.Get",
                                                                "Arrays.Stat",
                                                                "Arrays.List",
                                                                "Arrays.Delete",
                                                                "Regions.Register",
                                                                "Regions.Unregister",
                                                                "Regions.List",
                                                                "Device.Describe",
                                                                "Device.DescribeKernels",
                                                                "Health.Check",
                                                                "Health.Watch",
                                                                "Reflection.Info",
                                                                "other"};
inline constexpr std::array<std::string_view, 7> kOperationLabels{"none", "rmse", "transpose", "gaussian_pdf",
                                                                  "put",  "get",  "other"};
inline constexpr std::array<std::string_view, 29> kReasonLabels{"none",
                                                                "BAD_VALUE",
                                                                "BAD_MESSAGE",
                                                                "RUN_RULE",
                                                                "BYTES_MISSING",
                                                                "LIMIT",
                                                                "BUSY",
                                                                "USE_EXECUTE",
                                                                "IDLE",
                                                                "DEADLINE",
                                                                "CHECKSUM",
                                                                "DRAINING",
                                                                "DEVICE_FAILED",
                                                                "CANCELLED",
                                                                "INTERNAL_ERROR",
                                                                "STREAM_LOST",
                                                                "OUT_OF_WINDOW",
                                                                "WRONG_INSTANCE",
                                                                "ARRAY",
                                                                "REGION",
                                                                "REGION_SHRUNK",
                                                                "REGION_ACCESS",
                                                                "REGION_UNPINNABLE",
                                                                "REGIONS_OFF",
                                                                "UNKNOWN_METHOD",
                                                                "COMPRESSED",
                                                                "IDENTITY",
                                                                "POLICY",
                                                                "other"};

/// Thread-safe. Neither construction nor observing throws for what a client did.
class Metrics : public rpc::CallObserver {
 public:
  /// `device` is "cpu" or "cuda:0 NVIDIA H200"; `engine_stats` is called on scraping threads, until
  /// StopServing returns or this is destroyed. An empty function leaves the engine out.
  /// `audit` may be null.
  Metrics(std::string_view version, std::string_view device, std::function<EngineStats()> engine_stats,
          std::shared_ptr<AuditLog> audit = nullptr);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Serves GET /metrics on host:port or [v6]:port (port 0 picks one) and returns the address with the bound
  /// port. UNAVAILABLE `CANNOT_LISTEN` where the address cannot be had; FAILED_PRECONDITION where it serves
  /// already. Call from one thread at a time with StopServing.
  Result<std::string> Serve(const std::string& address);
  /// Ends serving, which can take two seconds; no scrape runs afterwards. Call before what `engine_stats`
  /// reads is destroyed.
  void StopServing();

  void OnCallStart(std::string_view method) override;
  /// Counts the call and logs its lines (access_log.h, audit_log.h), unless many fail alike (failure_fold.h).
  void OnCallEnd(const rpc::CallRecord& record) override;
  void OnConnectionOpened() override;
  void OnConnectionClosed() override;
  void OnConnectionRefused(rpc::Refusal why) override;
  void OnConnectionEnded(rpc::Ending why) override;
  void OnMessageRefused() override { messages_refused_->Increment(); }
  void OnConnectionWindow(rpc::WindowClass needed, rpc::WindowClass given) override;
  void OnCredentials(const rpc::CredentialState& state) override { credentials_.Set(state); }
  void OnNotice(std::string_view text) override;
  void OnWarning(std::string_view text) override;

  /// All samples in Prometheus' text format, as a scrape gets them.
  std::string Render() const;

 private:
  static constexpr size_t kCodes = 17;

  void AddConnectionSeries();
  void Count(const rpc::CallRecord& record, size_t method);
  prometheus::Counter& Calls(size_t method, size_t operation, Code code);
  prometheus::Histogram& Wall(size_t method);

  std::shared_ptr<prometheus::Registry> registry_;
  CredentialMetrics credentials_{registry_.get()};
  std::shared_ptr<ProcessMetrics> process_;
  std::shared_ptr<EngineMetrics> engine_;  // may be null
  prometheus::Family<prometheus::Counter>& calls_family_;
  prometheus::Family<prometheus::Histogram>& wall_family_;
  // Series are found by index, without a lock or a hash; those that most servers never need are made when
  // first used.
  std::array<std::atomic<prometheus::Counter*>, kMethodLabels.size() * kOperationLabels.size() * kCodes>
      calls_{};
  std::array<std::atomic<prometheus::Histogram*>, kMethodLabels.size()> wall_{};
  std::array<prometheus::Gauge*, kMethodLabels.size()> in_progress_{};
  prometheus::Counter *joined_ = nullptr, *lost_ = nullptr;  ///< further streams that ended OK, and others
  std::array<prometheus::Counter*, kMethodLabels.size()> received_{}, sent_{};
  std::array<prometheus::Counter*, kReasonLabels.size()> refusals_{};
  std::array<prometheus::Counter*, 2> shed_{};  ///< by JobClass
  std::array<prometheus::Histogram*, kStageCount> stages_{};
  prometheus::Gauge* connections_ = nullptr;
  prometheus::Counter* connections_opened_ = nullptr;
  std::array<prometheus::Counter*, rpc::kRefusalNames.size()> connections_refused_{};
  std::array<prometheus::Counter*, rpc::kEndingNames.size()> connections_ended_{};
  prometheus::Counter* messages_refused_ = nullptr;
  std::array<prometheus::Counter*, rpc::kWindowClassNames.size()> connections_windows_{};
  prometheus::Counter* connections_narrowed_ = nullptr;
  const std::shared_ptr<AuditLog> audit_;  // may be null
  FailureFold fold_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // last: its threads read all of the above
};

}  // namespace tilewire::ops

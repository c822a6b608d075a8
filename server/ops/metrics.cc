#include "server/ops/metrics.h"

#include "server/ops/logging.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <sstream>
#include <utility>

#include "server/ops/access_log.h"

namespace tilewire::ops {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

/// From a kernel launch to a long upload.
const std::vector<double>& SecondsBuckets() {
  static const std::vector<double> buckets{10e-6,  25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3,
                                           2.5e-3, 5e-3,  10e-3, 25e-3,  50e-3,  0.1,    0.25,
                                           0.5,    1,     2.5,   5,      10,     30,     60};
  return buckets;
}

/// Index of `text` among labels whose last is "other".
template <size_t N>
size_t LabelIndex(const std::array<std::string_view, N>& labels, std::string_view text) {
  static_assert(N > 0);
  if (text.empty()) text = "none";
  const auto found = std::find(labels.begin(), labels.end() - 1, text);
  return static_cast<size_t>(found - labels.begin());
}

/// The series of a slot, made once. Adding is idempotent, so that two threads may race here.
template <typename Metric, typename... Args>
Metric& Slot(std::atomic<Metric*>* slot, prometheus::Family<Metric>& family, const prometheus::Labels& labels,
             const Args&... args) {
  Metric& made = family.Add(labels, args...);
  slot->store(&made, std::memory_order_release);
  return made;
}

}  // namespace

Metrics::Metrics(std::string_view version, std::string_view device, std::function<EngineStats()> engine_stats,
                 std::shared_ptr<AuditLog> audit)
    : registry_(std::make_shared<prometheus::Registry>()),
      process_(std::make_shared<ProcessMetrics>(audit)),
      engine_(engine_stats ? std::make_shared<EngineMetrics>(std::move(engine_stats)) : nullptr),
      calls_family_(BuildCounter()
                        .Name("tilewire_calls_total")
                        .Help("Finished calls by method, operation and status")
                        .Register(*registry_)),
      wall_family_(BuildHistogram()
                       .Name("tilewire_call_wall_seconds")
                       .Help("Time from a call's arrival to its end")
                       .Register(*registry_)),
      audit_(std::move(audit)),
      fold_([this](const FailureKind& kind, uint64_t calls) {
        LogFolded(kind, calls);
        if (audit_) audit_->TellFolded(kind, calls);
      }) {
  BuildGauge()
      .Name("tilewire_build_info")
      .Help("Always 1; the labels say which build serves on which device")
      .Register(*registry_)
      .Add({{"version", std::string(version)}, {"device", std::string(device)}})
      .Set(1);
  auto& in_progress =
      BuildGauge().Name("tilewire_calls_in_progress").Help("Calls begun and not ended").Register(*registry_);
  auto& received = BuildCounter()
                       .Name("tilewire_received_bytes_total")
                       .Help("Operand bytes received, also of failed calls")
                       .Register(*registry_);
  auto& sent =
      BuildCounter().Name("tilewire_sent_bytes_total").Help("Result bytes sent").Register(*registry_);
  for (size_t i = 0; i < kMethodLabels.size(); ++i) {
    const prometheus::Labels labels{{"method", std::string(kMethodLabels[i])}};
    in_progress_[i] = &in_progress.Add(labels);
    received_[i] = &received.Add(labels);
    sent_[i] = &sent.Add(labels);
  }
  auto& refusals = BuildCounter()
                       .Name("tilewire_refusals_total")
                       .Help("Calls that did not end OK, by reason")
                       .Register(*registry_);
  for (size_t i = 0; i < kReasonLabels.size(); ++i) {
    refusals_[i] = &refusals.Add({{"reason", std::string(kReasonLabels[i])}});
  }
  auto& shed = BuildCounter()
                   .Name("tilewire_calls_shed_total")
                   .Help("Unary calls refused BUSY before they waited, since too many others did")
                   .Register(*registry_);
  shed_ = {&shed.Add({{"class", "small"}}), &shed.Add({{"class", "bulk"}})};
  auto& joins = BuildCounter()
                    .Name("tilewire_joined_streams_total")
                    .Help("Further streams of striped calls, by how they ended; refused ones are `other` too")
                    .Register(*registry_);
  joined_ = &joins.Add({{"status", "OK"}});
  lost_ = &joins.Add({{"status", "other"}});
  auto& stages =
      BuildHistogram()
          .Name("tilewire_stage_seconds")
          .Help(
              "Time of jobs by stage: unions of spans, so stages of one job overlap; other: what none covers")
          .Register(*registry_);
  for (int i = 1; i < kStageCount; ++i) {
    stages_[static_cast<size_t>(i)] =
        &stages.Add({{"stage", StageName(static_cast<Stage>(i))}}, SecondsBuckets());
  }
  AddConnectionSeries();
}

void Metrics::AddConnectionSeries() {
  connections_ = &BuildGauge()
                      .Name("tilewire_connections")
                      .Help("Connections that there are")
                      .Register(*registry_)
                      .Add({});
  connections_opened_ = &BuildCounter()
                             .Name("tilewire_connections_opened_total")
                             .Help("Connections taken in")
                             .Register(*registry_)
                             .Add({});
  auto& refused = BuildCounter()
                      .Name("tilewire_connections_refused_total")
                      .Help("Connections closed as soon as they came, by reason")
                      .Register(*registry_);
  for (size_t i = 0; i < rpc::kRefusalNames.size(); ++i)
    connections_refused_[i] = &refused.Add({{"reason", std::string(rpc::kRefusalNames[i])}});
  auto& ended = BuildCounter()
                    .Name("tilewire_connections_ended_total")
                    .Help("Connections that the server ended, by reason")
                    .Register(*registry_);
  for (size_t i = 0; i < rpc::kEndingNames.size(); ++i)
    connections_ended_[i] = &ended.Add({{"reason", std::string(rpc::kEndingNames[i])}});
  messages_refused_ = &BuildCounter()
                           .Name("tilewire_messages_refused_total")
                           .Help("Messages on their way that were refused, as too much of such was here")
                           .Register(*registry_)
                           .Add({});
  auto& windows = BuildCounter()
                      .Name("tilewire_connections_window_total")
                      .Help("Connections by the windows they got, as far as distance was looked at")
                      .Register(*registry_);
  for (size_t i = 0; i < rpc::kWindowClassNames.size(); ++i)
    connections_windows_[i] = &windows.Add({{"window", std::string(rpc::kWindowClassNames[i])}});
  connections_narrowed_ =
      &BuildCounter()
           .Name("tilewire_connections_narrowed_total")
           .Help("Connections whose distance asked for more than --distance-bytes had left")
           .Register(*registry_)
           .Add({});
}

Metrics::~Metrics() {
  StopServing();
}

Result<std::string> Metrics::Serve(const std::string& address) {
  if (exposer_) return Fail(Status(Code::kFailedPrecondition, "BAD_VALUE", "metrics are served already"));
  try {
    // Two threads: one stuck client does not end scraping, and it is not stuck for long.
    const std::vector<std::string> options{"listening_ports",    address, "num_threads", "2",
                                           "request_timeout_ms", "5000"};
    auto exposer = std::make_unique<prometheus::Exposer>(options);
    exposer->RegisterCollectable(registry_);
    exposer->RegisterCollectable(process_);
    if (engine_) exposer->RegisterCollectable(engine_);
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty())
      return Fail(Status(Code::kUnavailable, "CANNOT_LISTEN", "metrics: no port on " + address));
    exposer_ = std::move(exposer);
    return address.substr(0, address.rfind(':') + 1) + std::to_string(ports.front());
  } catch (const std::exception&) {  // its text names options, not what is wrong
    return Fail(Status(Code::kUnavailable, "CANNOT_LISTEN",
                       "--metrics-listen is " + address +
                           ", which cannot be listened on; allowed: a free address of "
                           "this machine"));
  }
}

void Metrics::StopServing() {
  exposer_.reset();
  if (audit_) audit_->Flush();  // the process may end without destructors
}

prometheus::Counter& Metrics::Calls(size_t method, size_t operation, Code code) {
  const size_t status = std::min(static_cast<size_t>(code), kCodes - 1);
  auto& slot = calls_[(method * kOperationLabels.size() + operation) * kCodes + status];
  if (auto* known = slot.load(std::memory_order_acquire)) return *known;
  return Slot(&slot, calls_family_,
              {{"method", std::string(kMethodLabels[method])},
               {"operation", std::string(kOperationLabels[operation])},
               {"status", std::string(CodeName(code))}});
}

prometheus::Histogram& Metrics::Wall(size_t method) {
  auto& slot = wall_[method];
  if (auto* known = slot.load(std::memory_order_acquire)) return *known;
  return Slot(&slot, wall_family_, {{"method", std::string(kMethodLabels[method])}}, SecondsBuckets());
}

void Metrics::OnCallStart(std::string_view method) {
  in_progress_[LabelIndex(kMethodLabels, method)]->Increment();
}

void Metrics::OnCallEnd(const rpc::CallRecord& record) {
  const size_t method = LabelIndex(kMethodLabels, record.method);
  if (record.joins) {  // the job's first stream is the call
    (record.status.ok() ? joined_ : lost_)->Increment();
  } else {
    Count(record, method);
  }
  // Last: once a reader has seen no call in progress, its next reading has all that ended.
  in_progress_[method]->Decrement();
  if (!record.status.ok() && !fold_.Admit(record)) return;
  const auto now = std::chrono::system_clock::now();  // in both, so that they are found by each other
  LogCall(record, now);
  if (audit_) audit_->Tell(record, now);
}

void Metrics::Count(const rpc::CallRecord& record, size_t method) {
  Calls(method, LabelIndex(kOperationLabels, record.operation), record.status.code()).Increment();
  if (!record.status.ok()) refusals_[LabelIndex(kReasonLabels, record.status.reason())]->Increment();
  if (record.shed) shed_[static_cast<size_t>(*record.shed)]->Increment();
  received_[method]->Increment(static_cast<double>(record.bytes_in));
  sent_[method]->Increment(static_cast<double>(record.bytes_out));
  Wall(method).Observe(std::max(0.0, record.timing.wall_us) * 1e-6);
  for (int i = 1; i < kStageCount; ++i) {
    const double stage_us = record.timing.of(static_cast<Stage>(i));
    if (stage_us >= 0) stages_[static_cast<size_t>(i)]->Observe(stage_us * 1e-6);
  }
}

void Metrics::OnConnectionOpened() {
  connections_opened_->Increment();
  connections_->Increment();
}

void Metrics::OnConnectionClosed() {
  connections_->Decrement();
}

void Metrics::OnConnectionRefused(rpc::Refusal why) {
  connections_refused_[static_cast<size_t>(why)]->Increment();
}

void Metrics::OnConnectionEnded(rpc::Ending why) {
  connections_ended_[static_cast<size_t>(why)]->Increment();
}

void Metrics::OnConnectionWindow(rpc::WindowClass needed, rpc::WindowClass given) {
  connections_windows_[static_cast<size_t>(given)]->Increment();
  if (given != needed) connections_narrowed_->Increment();
}

void Metrics::OnNotice(std::string_view text) {
  LogEvent(spdlog::level::info, text);
}

void Metrics::OnWarning(std::string_view text) {
  LogEvent(spdlog::level::warn, text);
}

std::string Metrics::Render() const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  auto append = [&](std::vector<prometheus::MetricFamily> more) {
    std::move(more.begin(), more.end(), std::back_inserter(families));
  };
  append(process_->Collect());
  if (engine_) append(engine_->Collect());
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace tilewire::ops

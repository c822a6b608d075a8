#include "client/cpp/convert.h"

#include <charconv>

#include "client/cpp/call_spec.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tilewire::client {
namespace {

/// Milliseconds of `grpc-retry-pushback-ms`, or −1.
int64_t Pushback(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("grpc-retry-pushback-ms");
  if (found == trailers.end()) return -1;
  int64_t ms = -1;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, ms);
  return error == std::errc() && stop == end && ms >= 0 ? ms : -1;
}

void ReadErrorInfo(const std::string& details, Status::Detail* out) {
  google::rpc::Status status;
  if (details.empty() || !status.ParseFromString(details)) return;
  for (const auto& any : status.details()) {
    google::rpc::ErrorInfo info;
    if (!any.Is<google::rpc::ErrorInfo>() || !any.UnpackTo(&info)) continue;
    out->reason = info.reason();
    for (const auto& [key, value] : info.metadata()) {
      if (key == "field") out->field = value;
      if (key == "value") out->value = value;
      if (key == "allowed") out->allowed = value;
    }
  }
}

/// What gRPC says where a peer ended a stream with ENHANCE_YOUR_CALM.
constexpr std::string_view kCalmDown = "RST_STREAM with error code 11";

template <typename Has>
std::optional<double> Optional(Has has, double value) {
  return has ? std::optional(value) : std::nullopt;
}

}  // namespace

Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return {};
  Status::Detail detail;
  const int code = status.error_code();
  detail.code = code >= 1 && code <= 16 ? static_cast<Code>(code) : Code::kUnknown;
  detail.message = status.error_message();
  ReadErrorInfo(status.error_details(), &detail);
  // gRPC itself ends streams, by this HTTP/2 code, when it is short of memory: nothing of the call is to
  // blame, and nothing of it remains.
  if (detail.reason.empty() && detail.code == Code::kResourceExhausted &&
      detail.message.find(kCalmDown) != std::string::npos) {
    detail.code = Code::kUnavailable;
    detail.reason = "STREAM_CUT";
    detail.message = "the server's transport is short of memory and cut the stream: " + detail.message;
  }
  // Ended by this side, or by a proxy: no details, but the words are the same.
  if (detail.reason.empty() && detail.code == Code::kDeadlineExceeded) detail.reason = "DEADLINE";
  if (detail.reason.empty() && detail.code == Code::kCancelled) detail.reason = "CANCELLED";
  if (detail.code == Code::kResourceExhausted || detail.code == Code::kUnavailable)
    detail.retry_after_ms = Pushback(context);
  return Status(std::move(detail));
}

Status BadReply(std::string_view what) {
  return Status(Code::kInternal, "BAD_REPLY", "the server broke the contract: " + std::string(what));
}

Timing FromProto(const v1::Timing& t) {
  Timing out;
  out.queue_us = Optional(t.has_queue_us(), t.queue_us());
  out.receive_us = Optional(t.has_receive_us(), t.receive_us());
  out.stage_us = Optional(t.has_stage_us(), t.stage_us());
  out.h2d_us = Optional(t.has_h2d_us(), t.h2d_us());
  out.kernel_us = Optional(t.has_kernel_us(), t.kernel_us());
  out.d2h_us = Optional(t.has_d2h_us(), t.d2h_us());
  out.send_us = Optional(t.has_send_us(), t.send_us());
  out.other_us = Optional(t.has_other_us(), t.other_us());
  out.overlap = Optional(t.has_overlap(), t.overlap());
  out.wall_us = t.wall_us();
  out.bytes_in = t.bytes_in();
  out.bytes_out = t.bytes_out();
  out.blocks = t.blocks();
  out.ranges = t.ranges();
  out.lanes = t.lanes();
  out.streams = t.streams();
  out.device = t.device();
  out.bottleneck = t.bottleneck();
  out.bottleneck_share = Optional(t.has_bottleneck_share(), t.bottleneck_share());
  out.round_trip_us = Optional(t.has_round_trip_us(), t.round_trip_us());
  out.window_share = Optional(t.has_window_share(), t.window_share());
  out.region_bytes_in = t.region_bytes_in();
  out.region_bytes_out = t.region_bytes_out();
  if (t.has_bytes_copied()) out.bytes_copied = t.bytes_copied();
  out.spans_dropped = t.spans_dropped();
  for (const v1::Span& span : t.spans())
    if (v1::Stage_IsValid(span.stage()) &&
        span.stage() != v1::STAGE_UNSPECIFIED)  // newer stages: no concern of this client
      out.spans.push_back({static_cast<Stage>(span.stage()), span.begin_us(), span.end_us(), span.track(),
                           span.index(), span.bytes(), span.operand()});
  return out;
}

ServerInfo FromProto(const v1::DescribeResponse& in) {
  ServerInfo out;
  out.instance = in.instance();
  out.version = in.version();
  for (const auto& d : in.devices()) {
    out.devices.push_back({.id = d.id(),
                           .name = d.name(),
                           .compute_capability = d.compute_capability(),
                           .driver_version = d.driver_version(),
                           .runtime_version = d.runtime_version(),
                           .memory_bytes = d.memory_bytes(),
                           .processors = d.processors()});
    auto& device = out.devices.back();
    if (d.has_copy_in_bytes_per_second()) device.copy_in_bytes_per_second = d.copy_in_bytes_per_second();
    if (d.has_copy_out_bytes_per_second()) device.copy_out_bytes_per_second = d.copy_out_bytes_per_second();
  }
  out.numeric_versions.assign(in.numeric_versions().begin(), in.numeric_versions().end());
  const v1::Limits& limits = in.limits();
  out.block_bytes = limits.block_bytes();
  out.max_message_bytes = limits.max_message_bytes();
  out.max_unary_bytes = limits.max_unary_bytes();
  out.inline_result_bytes = limits.inline_result_bytes();
  out.lanes = limits.lanes();
  out.max_in_flight = limits.max_in_flight();
  out.queue_length = limits.queue_length();
  out.queue_seconds = limits.queue_seconds();
  out.idle_seconds = limits.idle_seconds();
  out.max_rank = limits.max_rank();
  out.store_seconds = limits.store_seconds();
  out.longest_store_seconds = limits.longest_store_seconds();
  out.store_bytes = limits.store_bytes();
  out.store_bytes_per_identity = limits.store_bytes_per_identity();
  out.max_arrays = limits.max_arrays();
  out.region_prefix = limits.region_prefix();
  out.region_bytes = limits.region_bytes();
  out.region_bytes_per_identity = limits.region_bytes_per_identity();
  out.region_seconds = limits.region_seconds();
  out.longest_region_seconds = limits.longest_region_seconds();
  out.device_regions = limits.device_regions();
  out.regions_registered = in.budgets().regions();
  out.region_bytes_registered = in.budgets().region_bytes();
  const v1::Budgets& budgets = in.budgets();
  out.device_bytes = budgets.device_bytes();
  out.device_bytes_in_use = budgets.device_bytes_in_use();
  out.pinned_bytes = budgets.pinned_bytes();
  out.pinned_bytes_in_use = budgets.pinned_bytes_in_use();
  out.jobs_in_flight = budgets.jobs_in_flight();
  out.jobs_queued = budgets.jobs_queued();
  out.arrays_stored = budgets.arrays_stored();
  out.array_bytes = budgets.array_bytes();
  return out;
}

ServerKernels FromProto(const v1::DescribeKernelsResponse& in) {
  ServerKernels out;
  out.device = in.device();
  for (const auto& launch : in.kernels()) {
    const v1::Extent3 &grid = launch.grid(), &block = launch.block();
    const auto signed64 = [](uint64_t value) { return static_cast<int64_t>(value); };
    const auto small = [](uint64_t value) { return static_cast<int>(value); };
    out.launches.push_back({.group = launch.group(),
                            .operation = launch.operation(),
                            .part = launch.part(),
                            .kernel = {.name = launch.name(),
                                       .registers = small(launch.registers()),
                                       .local_bytes = signed64(launch.local_bytes()),
                                       .static_shared_bytes = signed64(launch.static_shared_bytes()),
                                       .const_bytes = signed64(launch.const_bytes()),
                                       .max_threads_per_block = small(launch.max_threads_per_block()),
                                       .binary_version = small(launch.binary_version()),
                                       .ptx_version = small(launch.ptx_version()),
                                       .grid = {signed64(grid.x()), signed64(grid.y()), signed64(grid.z())},
                                       .block = {small(block.x()), small(block.y()), small(block.z())},
                                       .dynamic_shared_bytes = signed64(launch.dynamic_shared_bytes()),
                                       .blocks_per_multiprocessor = small(launch.blocks_per_multiprocessor()),
                                       .occupancy = launch.occupancy()}});
  }
  return out;
}

Result<ArraySpec> FromProto(const v1::ArraySpec& spec) {
  const std::vector<int64_t> dims(spec.shape().begin(), spec.shape().end());
  return MakeSpec(static_cast<int>(spec.dtype()), dims, "result");
}

void ToProto(const ArraySpec& spec, v1::ArraySpec* out) {
  out->set_dtype(static_cast<v1::DType>(spec.dtype));
  const auto dims = spec.shape.dims();
  out->mutable_shape()->Assign(dims.begin(), dims.end());
}

void ToProto(const RegionPlace& place, v1::RegionPlace* out) {
  out->set_region(place.region);
  out->set_offset(place.offset);
}

Result<ArrayInfo> FromProto(const v1::ArrayInfo& info) {
  const auto spec = FromProto(info.spec());
  if (!spec) return Fail(BadReply(spec.error().message()));
  return ArrayInfo{.id = info.array(),
                   .spec = *spec,
                   .device_bytes = info.device_bytes(),
                   .device = info.device(),
                   .evictable = info.evictable(),
                   .age_seconds = info.age_seconds(),
                   .expires_seconds = info.expires_seconds(),
                   .idle_seconds = info.idle_seconds(),
                   .users = info.users()};
}

namespace {

/// Of one result. `offset`: where it begins in the area of all results.
Status CheckResult(const v1::ArrayResult& result, const ArraySpec& spec, const ArraySpec* expected,
                   uint64_t offset, const CallSpec& call) {
  if (expected != nullptr && spec != *expected)
    return BadReply("the result is " + std::string(Name(spec.dtype)) + spec.shape.ToString() + ", expected " +
                    std::string(Name(expected->dtype)) + expected->shape.ToString());
  const bool stored = call.store.has_value();
  if (stored == result.array().empty())
    return BadReply(stored ? "a stored result without an id" : "a result was stored that was to be sent");
  const bool there = call.into && result.region().region() == call.into->region &&
                     result.region().offset() == call.into->offset + offset;
  if (call.into ? !there : result.has_region()) return BadReply("the result is not where it was to go");
  return {};
}

}  // namespace

Status TakeResults(const google::protobuf::RepeatedPtrField<v1::ArrayResult>& results, const CallSpec& call,
                   Reply* reply) {
  const auto count = static_cast<size_t>(results.size());
  if (call.results ? count != call.results->size() : count < 1 || count > kMaxResults)
    return BadReply(
        std::to_string(count) + " results, expected " +
        (call.results ? std::to_string(call.results->size()) : "1 to " + std::to_string(kMaxResults)));
  uint64_t end = 0;
  for (size_t k = 0; k < count; ++k) {
    const v1::ArrayResult& result = results[static_cast<int>(k)];
    const auto spec = FromProto(result.spec());
    if (!spec) return BadReply(spec.error().message());
    const uint64_t offset = (end + kResultAlignment - 1) / kResultAlignment * kResultAlignment;
    TILEWIRE_RETURN_IF_ERROR(
        CheckResult(result, *spec, call.results ? &(*call.results)[k] : nullptr, offset, call));
    end = offset + static_cast<uint64_t>(spec->bytes());
    reply->specs.push_back(*spec);
    if (call.store) reply->arrays.push_back(result.array());
  }
  reply->spec = reply->specs.front();
  reply->array = results[0].array();
  return {};
}

}  // namespace tilewire::client

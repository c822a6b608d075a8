#include "server/rpc/conversions/convert.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "server/base/limits.h"
#include "server/rpc/conversions/operations.h"

namespace tilewire::rpc {

Result<ArraySpec> FromProto(const v1::ArraySpec& spec, const std::string& field) {
  return MakeSpec(static_cast<int>(spec.dtype()),
                  {spec.shape().data(), static_cast<size_t>(spec.shape_size())}, field);
}

void ToProto(const ArraySpec& spec, v1::ArraySpec* out) {
  out->set_dtype(static_cast<v1::DType>(spec.dtype));
  for (const int64_t extent : spec.shape.dims()) out->add_shape(extent);
}

void ToProto(const Timing& timing, v1::Timing* out) {
  const auto set = [&](Stage stage, auto setter) {
    if (timing.of(stage) >= 0) (out->*setter)(timing.of(stage));
  };
  set(Stage::kQueue, &v1::Timing::set_queue_us);
  set(Stage::kReceive, &v1::Timing::set_receive_us);
  set(Stage::kStage, &v1::Timing::set_stage_us);
  set(Stage::kH2D, &v1::Timing::set_h2d_us);
  set(Stage::kKernel, &v1::Timing::set_kernel_us);
  set(Stage::kD2H, &v1::Timing::set_d2h_us);
  set(Stage::kSend, &v1::Timing::set_send_us);
  set(Stage::kOther, &v1::Timing::set_other_us);
  out->set_wall_us(timing.wall_us);
  out->set_bytes_in(timing.bytes_in);
  out->set_bytes_out(timing.bytes_out);
  out->set_region_bytes_in(timing.region_bytes_in);
  out->set_region_bytes_out(timing.region_bytes_out);
  out->set_bytes_copied(timing.bytes_copied);
  out->set_blocks(timing.blocks);
  out->set_ranges(timing.ranges);
  out->set_lanes(timing.lanes);
  out->set_streams(timing.streams);
  out->set_device(timing.device);
  if (timing.overlap >= 0) out->set_overlap(timing.overlap);
  out->set_bottleneck(timing.bottleneck);
  if (timing.bottleneck_share >= 0) out->set_bottleneck_share(timing.bottleneck_share);
  const auto micros = [&](TimePoint t) {
    return std::chrono::duration<double, std::micro>(t - timing.origin).count();
  };
  for (const Span& span : timing.spans) {
    v1::Span* s = out->add_spans();
    s->set_stage(static_cast<v1::Stage>(span.stage));
    s->set_begin_us(micros(span.begin));
    s->set_end_us(micros(span.end));
    s->set_track(span.track);
    s->set_index(span.index);
    s->set_bytes(span.bytes);
    s->set_operand(span.operand);
  }
  if (timing.round_trip_us >= 0) out->set_round_trip_us(timing.round_trip_us);
  if (timing.window_share >= 0) out->set_window_share(timing.window_share);
  out->set_spans_dropped(timing.spans_dropped);
}

void DescribeResult(const engine::Job& job, size_t result, v1::ArrayResult* out) {
  ToProto(job.operation().results()[result], out->mutable_spec());
  if (job.stores()) out->set_array(job.stored_id(result));
  const engine::RegionPart* const part = job.result_region();
  if (!part) return;
  out->mutable_region()->set_region(part->region->id());
  out->mutable_region()->set_offset(part->offset +
                                    static_cast<uint64_t>(job.operation().result_offset(result)));
}

namespace {

std::string Text(const ArraySpec& spec) {
  return std::string(Name(spec.dtype)) + " " + spec.shape.ToString();
}

}  // namespace

Status NoOperation(const std::string& field, const std::string& allowed) {
  return BadValue(field, "not set", allowed).value();
}
Status WrongCount(const std::string& field, int count, size_t wanted) {
  return BadValue(field, std::to_string(count) + " specs", std::to_string(wanted)).value();
}

Result<ArraySpec> ResidentSpec(const v1::ArraySpec& spec, const engine::ResidentArray& resident,
                               const std::string& field) {
  if (spec.dtype() == v1::DTYPE_UNSPECIFIED && spec.shape_size() == 0) return resident.spec();
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec said, FromProto(spec, field));
  if (said == resident.spec()) return said;
  return BadValue(field, Text(said), Text(resident.spec()) + ", as the stored array, or nothing");
}

size_t OperandCount(const v1::Operation& operation) {
  const Named named = NamedBy(operation);
  return named.descriptor != nullptr ? named.descriptor->operands.size() : 0;
}

Result<std::unique_ptr<engine::Operation>> OperationOf(const v1::Operation& operation,
                                                       std::span<const ArraySpec> operands) {
  Named named = NamedBy(operation);
  if (named.descriptor == nullptr) return Fail(NoOperation("operation", OperationNames()));
  return named.descriptor->Make(operands, std::move(named.attributes));
}

Result<std::unique_ptr<engine::Operation>> OperationOf(const v1::Open& open, const v1::Operation& asked,
                                                       const std::vector<engine::ArrayUse>& residents) {
  const size_t wanted = open.has_put() ? 1 : OperandCount(asked);
  if (wanted == 0) return Fail(NoOperation("open.operation", OperationNames("put")));
  const auto said = static_cast<size_t>(open.operands_size());
  std::vector<ArraySpec> operands;
  for (size_t i = 0; i < wanted && said <= wanted; ++i) {
    const std::string field = "operands[" + std::to_string(i) + "]";
    const bool resident = i < residents.size() && residents[i];
    if (i >= said && !resident) break;
    static const v1::ArraySpec nothing;
    const v1::ArraySpec& spec = i < said ? open.operands(static_cast<int>(i)) : nothing;
    TILEWIRE_ASSIGN_OR_RETURN(operands.emplace_back(),
                              resident ? ResidentSpec(spec, *residents[i], field) : FromProto(spec, field));
  }
  if (operands.size() != wanted) return Fail(WrongCount("open.operands", open.operands_size(), wanted));
  if (open.has_put()) return engine::MakePass(operands[0], "put");
  return OperationOf(asked, operands);
}

Result<KernelQuestion> QuestionOf(const v1::DescribeKernelsRequest& request) {
  TILEWIRE_ASSIGN_OR_RETURN(const v1::Operation asked, AskedOf(request));
  Named named = NamedBy(asked);
  if (named.descriptor == nullptr && request.operands_size() == 0) return KernelQuestion();
  if (named.descriptor == nullptr) return Fail(NoOperation("operation", OperationNames()));
  const size_t wanted = named.descriptor->operands.size();
  if (static_cast<size_t>(request.operands_size()) != wanted)
    return Fail(WrongCount("operands", request.operands_size(), wanted));
  std::vector<ArraySpec> operands;
  for (const v1::ArraySpec& spec : request.operands()) {
    TILEWIRE_ASSIGN_OR_RETURN(operands.emplace_back(),
                              FromProto(spec, "operands[" + std::to_string(operands.size()) + "]"));
  }
  KernelQuestion question{.text = named.descriptor->Text(operands, named.attributes)};
  TILEWIRE_ASSIGN_OR_RETURN(question.operation,
                            named.descriptor->Make(operands, std::move(named.attributes)));
  return question;
}

Result<PageRequest> PageOf(uint32_t page_size, const std::string& page) {
  if (page_size > kMaxListPage)
    return BadValue("page_size", std::to_string(page_size), "0 to " + std::to_string(kMaxListPage));
  PageRequest wanted{.size = page_size > 0 ? page_size : kMaxListPage};
  const char* const end = page.data() + page.size();
  const auto read = std::from_chars(page.data(), end, wanted.begin);
  if (page.empty() || (read.ec == std::errc() && read.ptr == end)) return wanted;
  return BadValue("page", std::to_string(page.size()) + " characters", "a next_page as told, or nothing");
}

Result<int64_t> OutputChunkBytes(const v1::Options& options) {
  if (options.output_chunk_bytes() == 0) return kDefaultOutputChunkBytes;
  if (options.output_chunk_bytes() < static_cast<uint64_t>(kMinOutputChunkBytes) ||
      options.output_chunk_bytes() > static_cast<uint64_t>(kMaxOutputChunkBytes))
    return BadValue("options.output_chunk_bytes", std::to_string(options.output_chunk_bytes()),
                    std::to_string(kMinOutputChunkBytes) + " to " + std::to_string(kMaxOutputChunkBytes));
  return static_cast<int64_t>(options.output_chunk_bytes());
}

Result<engine::JobOptions> JobOptionsOf(const v1::Options& options) {
  const uint64_t block = options.block_bytes();
  if (block != 0 && (block < static_cast<uint64_t>(kMinBlockBytes) ||
                     block > static_cast<uint64_t>(kMaxBlockBytes) || block % kBlockMultiple != 0))
    return BadValue("options.block_bytes", std::to_string(block),
                    std::to_string(kMinBlockBytes) + " to " + std::to_string(kMaxBlockBytes) +
                        ", a multiple of " + std::to_string(kBlockMultiple));
  engine::JobOptions job;
  job.trace = options.trace();
  job.block_bytes = static_cast<int64_t>(block);
  job.lanes = static_cast<int>(std::min<uint32_t>(options.lanes(), kMaxLanes));
  job.sequential = options.sequential();
  if (!options.has_store()) return job;
  const std::string& key = options.store().idempotency_key();
  const bool visible = std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!visible || key.size() > kMaxIdempotencyKeyBytes)
    return BadValue("options.store.idempotency_key", std::to_string(key.size()) + " bytes long",
                    "1 to " + std::to_string(kMaxIdempotencyKeyBytes) + " visible ASCII characters, or none");
  job.store = engine::StoreOptions{options.store().ttl_seconds(), options.store().evictable(), key};
  return job;
}

}  // namespace tilewire::rpc

// What the server is, and what kernels its device runs.
#include "server/base/limits.h"
#include "server/engine/stores/region_count.h"
#include "server/rpc/calls/unary.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/operations.h"
#include "server/rpc/transport/plain.h"

namespace tilewire::rpc {
namespace {

void ToProto(const int64_t x, const int64_t y, const int64_t z, v1::Extent3* out) {
  out->set_x(static_cast<uint64_t>(x));
  out->set_y(static_cast<uint64_t>(y));
  out->set_z(static_cast<uint64_t>(z));
}

void ToProto(const engine::KernelLaunch& launch, v1::KernelLaunch* out) {
  const KernelInfo& kernel = launch.kernel;
  out->set_group(launch.group);
  out->set_operation(launch.operation);
  out->set_part(launch.part);
  out->set_name(kernel.name);
  out->set_registers(static_cast<uint32_t>(kernel.registers));
  out->set_local_bytes(static_cast<uint64_t>(kernel.local_bytes));
  out->set_static_shared_bytes(static_cast<uint64_t>(kernel.static_shared_bytes));
  out->set_dynamic_shared_bytes(static_cast<uint64_t>(kernel.dynamic_shared_bytes));
  out->set_const_bytes(static_cast<uint64_t>(kernel.const_bytes));
  out->set_max_threads_per_block(static_cast<uint32_t>(kernel.max_threads_per_block));
  out->set_binary_version(static_cast<uint32_t>(kernel.binary_version));
  out->set_ptx_version(static_cast<uint32_t>(kernel.ptx_version));
  ToProto(kernel.grid[0], kernel.grid[1], kernel.grid[2], out->mutable_grid());
  ToProto(kernel.block[0], kernel.block[1], kernel.block[2], out->mutable_block());
  out->set_blocks_per_multiprocessor(static_cast<uint32_t>(kernel.blocks_per_multiprocessor));
  out->set_occupancy(kernel.occupancy);
}

}  // namespace

Task<Status> ServeDescribe(UnaryCall& call, grpc::ByteBuffer* reply) {
  const engine::Engine& engine = call.engine();
  const engine::EngineOptions& options = engine.options();
  const EngineStats stats = engine.stats();
  v1::DescribeResponse response;
  response.set_instance(engine.instance());
  response.set_version(call.shared().version);
  for (const Descriptor* const operation : Operations())
    response.add_numeric_versions(std::string(operation->numeric_version));

  const engine::DeviceFacts& facts = engine.facts();
  v1::DeviceInfo* device = response.add_devices();
  device->set_id(facts.id);
  device->set_name(facts.name);
  device->set_memory_bytes(facts.memory_bytes);
  device->set_processors(facts.processors);
  device->set_compute_capability(facts.compute_capability);
  device->set_driver_version(facts.driver_version);
  device->set_runtime_version(facts.runtime_version);
  if (const engine::CopyRates& rates = engine.copy_rates(); rates.in > 0) {
    device->set_copy_in_bytes_per_second(rates.in);
    device->set_copy_out_bytes_per_second(rates.out);
  }

  v1::Limits* limits = response.mutable_limits();
  limits->set_block_bytes(options.block_bytes);
  limits->set_max_message_bytes(kMaxMessageBytes);
  limits->set_max_unary_bytes(kMaxUnaryBytes);
  limits->set_inline_result_bytes(kInlineResultBytes);
  limits->set_lanes(options.lanes);
  limits->set_max_in_flight(options.max_in_flight);
  limits->set_queue_length(options.queue_length);
  limits->set_queue_seconds(options.queue_seconds);
  limits->set_idle_seconds(call.shared().idle_seconds);
  limits->set_max_rank(kMaxRank);
  const engine::StoreLimits& store = call.engine().arrays().limits();
  limits->set_store_seconds(store.seconds);
  limits->set_longest_store_seconds(store.longest_seconds);
  limits->set_store_bytes(static_cast<uint64_t>(store.bytes));
  limits->set_store_bytes_per_identity(static_cast<uint64_t>(store.bytes_per_identity));
  limits->set_max_arrays(kMaxArrays);
  const engine::RegionLimits& regions = call.engine().regions().limits();
  limits->set_region_prefix(regions.prefix);
  limits->set_region_bytes(static_cast<uint64_t>(regions.bytes));
  limits->set_region_bytes_per_identity(static_cast<uint64_t>(regions.bytes_per_identity));
  limits->set_max_regions(static_cast<uint32_t>(engine::MostRegions()));
  limits->set_region_seconds(regions.seconds);
  limits->set_longest_region_seconds(regions.longest_seconds);
  limits->set_device_regions(regions.device);

  v1::Budgets* budgets = response.mutable_budgets();
  budgets->set_device_bytes(stats.device_bytes);
  budgets->set_device_bytes_in_use(stats.device_bytes_in_use);
  budgets->set_pinned_bytes(stats.pinned_bytes);
  budgets->set_pinned_bytes_in_use(stats.pinned_bytes_in_use);
  budgets->set_jobs_in_flight(stats.jobs_in_flight);
  budgets->set_jobs_queued(stats.jobs_queued);
  budgets->set_arrays_stored(stats.arrays_stored);
  budgets->set_array_bytes(stats.array_bytes);
  budgets->set_regions(stats.regions);
  budgets->set_region_bytes(stats.region_bytes);

  *reply = Plain(response);
  co_return Status();
}

Task<Status> ServeDescribeKernels(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::DescribeKernelsRequest>(&call.request);
  if (!request) co_return request.error();
  auto question = QuestionOf(*request);
  if (!question) co_return question.error();
  // Loading kernels takes its time: the engine does it on a thread of its own, and this one serves other
  // calls.
  const auto kernels =
      co_await OnQueue<Result<std::vector<engine::KernelLaunch>>>(call.queue(), [&](auto resume) {
        call.engine().DescribeKernels(std::move(question->operation), std::move(question->text),
                                      std::move(resume));
      });
  if (!kernels) co_return kernels.error();
  v1::DescribeKernelsResponse response;
  response.set_device(call.engine().facts().id);
  for (const engine::KernelLaunch& launch : *kernels) ToProto(launch, response.add_kernels());
  *reply = Plain(response);
  co_return Status();
}

Task<Status> ServeMeasureCeilings(UnaryCall& call, grpc::ByteBuffer* reply) {
  if (call.shared().running.draining())
    co_return Status(Code::kUnavailable, "DRAINING", "the server is going away");
  const auto ceilings = co_await OnQueue<Result<std::vector<engine::Ceiling>>>(
      call.queue(), [&](auto resume) { call.engine().MeasureCeilings(std::move(resume)); });
  if (!ceilings) co_return ceilings.error();
  v1::MeasureCeilingsResponse response;
  response.set_device(call.engine().facts().id);
  for (const engine::Ceiling& ceiling : *ceilings) {
    v1::Ceiling* out = response.add_ceilings();
    out->set_name(ceiling.name);
    out->set_bytes_per_second(ceiling.bytes_per_second);
  }
  Message message;
  message.AddCopy(response.SerializeAsString());
  *reply = message.Build();
  co_return Status();
}

}  // namespace tilewire::rpc

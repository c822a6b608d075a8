#include "server/base/limits.h"
#include "server/rpc/convert.h"
#include "server/rpc/unary.h"

namespace tilewire::rpc {

Task<Status> ServeDescribe(UnaryCall& call, grpc::ByteBuffer* reply) {
  const engine::Engine& engine = call.engine();
  const engine::EngineOptions& options = engine.options();
  const EngineStats stats = engine.stats();
  v1::DescribeResponse response;
  response.set_instance(engine.instance());
  response.set_version(call.shared().version);
  response.add_numeric_versions(std::string(rmse::kNumericVersion));
  response.add_numeric_versions(std::string(transpose::kNumericVersion));

  const engine::DeviceFacts& facts = engine.facts();
  v1::DeviceInfo* device = response.add_devices();
  device->set_id(facts.id);
  device->set_name(facts.name);
  device->set_memory_bytes(facts.memory_bytes);
  device->set_processors(facts.processors);
  device->set_compute_capability(facts.compute_capability);
  device->set_driver_version(facts.driver_version);
  device->set_runtime_version(facts.runtime_version);

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

  v1::Budgets* budgets = response.mutable_budgets();
  budgets->set_device_bytes(stats.device_bytes);
  budgets->set_device_bytes_in_use(stats.device_bytes_in_use);
  budgets->set_pinned_bytes(stats.pinned_bytes);
  budgets->set_pinned_bytes_in_use(stats.pinned_bytes_in_use);
  budgets->set_jobs_in_flight(stats.jobs_in_flight);
  budgets->set_jobs_queued(stats.jobs_queued);

  Message message;
  message.AddCopy(response.SerializeAsString());
  *reply = message.Build();
  co_return Status();
}

}  // namespace tilewire::rpc

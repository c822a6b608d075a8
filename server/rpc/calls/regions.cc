#include "server/rpc/calls/regions.h"

#include <algorithm>
#include <utility>

#include "server/rpc/conversions/convert.h"
#include "server/rpc/transport/plain.h"
#include "tilewire/v1/regions.pb.h"

namespace tilewire::rpc {
namespace {

void FactsToProto(const engine::RegionFacts& facts, v1::RegionInfo* out) {
  out->set_region(facts.id);
  const auto place = [&facts](auto* memory) {
    memory->set_offset(facts.request.offset);
    memory->set_bytes(facts.request.bytes);
  };
  if (facts.request.handle) {
    out->mutable_device_memory()->set_handle(*facts.request.handle);
    out->mutable_device_memory()->set_device(facts.request.device);
    place(out->mutable_device_memory());
  } else {
    out->mutable_shared_memory()->set_name(facts.request.name);
    place(out->mutable_shared_memory());
  }
  out->set_writable(facts.request.writable);
  out->set_age_seconds(facts.age_seconds);
  out->set_expires_seconds(std::max(facts.expires_seconds, 0.0));
  out->set_idle_seconds(facts.idle_seconds);
  out->set_users(facts.users);
}

Result<engine::RegionRequest> ParseRegister(UnaryCall& call) {
  TILEWIRE_ASSIGN_OR_RETURN(const auto request, ParsePlain<v1::RegisterRequest>(&call.request));
  engine::RegionRequest wanted{.writable = request.writable(), .seconds = request.ttl_seconds()};
  const auto place = [&wanted](const auto& memory) {
    wanted.offset = memory.offset();
    wanted.bytes = memory.bytes();
  };
  if (request.has_shared_memory()) {
    wanted.name = request.shared_memory().name();
    place(request.shared_memory());
  } else if (request.has_device_memory()) {
    wanted.handle = request.device_memory().handle();
    wanted.device = request.device_memory().device();
    place(request.device_memory());
  } else {
    return BadValue("memory", "not set", "shared_memory or device_memory");
  }
  return wanted;
}

}  // namespace

Task<Status> ServeRegister(UnaryCall& call, grpc::ByteBuffer* reply) {
  auto request = ParseRegister(call);
  if (!request) co_return request.error();
  if (call.shared().running.draining())
    co_return Status(Code::kUnavailable, "DRAINING", "the server is draining; try another");
  const PolicyLimits limits = call.own_limits();
  // Opening, mapping and pinning take their time: the store does it on a thread of its own.
  const auto facts = co_await OnQueue<Result<engine::RegionFacts>>(call.queue(), [&](auto resume) {
    call.engine().regions().Register(call.identity(), *request, std::move(resume),
                                     {.count = limits.regions, .bytes = limits.region_bytes});
  });
  if (!facts) co_return facts.error();
  if (call.cancelled()) {  // nobody will ever know the id
    (void)call.engine().regions().Unregister(facts->id, call.identity()).ok();
    co_return Status(Code::kCancelled, "CANCELLED", "the client is gone");
  }
  v1::RegionInfo info;
  FactsToProto(*facts, &info);
  *reply = Plain(info);
  co_return Status();
}

Task<Status> ServeUnregister(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::UnregisterRequest>(&call.request);
  if (!request) co_return request.error();
  const Status status = co_await OnQueue<Status>(call.queue(), [&](auto resume) {
    call.engine().regions().Unregister(request->region(), call.identity(), std::move(resume));
  });
  if (!status.ok()) co_return status;
  *reply = Plain(v1::UnregisterResponse());
  co_return Status();
}

Task<Status> ServeListRegions(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::ListRegionsRequest>(&call.request);
  if (!request) co_return request.error();
  const auto wanted = PageOf(request->page_size(), request->page());
  if (!wanted) co_return wanted.error();
  const auto page = call.engine().regions().List(call.identity(), wanted->begin, wanted->size,
                                                 {.bytes = call.own_limits().region_bytes});
  v1::ListRegionsResponse response;
  for (const engine::RegionFacts& facts : page.items) FactsToProto(facts, response.add_regions());
  if (page.next > 0) response.set_next_page(std::to_string(page.next));
  response.set_registered_bytes(static_cast<uint64_t>(page.held_bytes));
  response.set_quota_bytes(static_cast<uint64_t>(page.quota_bytes));
  *reply = Plain(response);
  co_return Status();
}

}  // namespace tilewire::rpc

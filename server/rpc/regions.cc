#include "server/rpc/regions.h"

#include <algorithm>

#include "server/rpc/convert.h"
#include "server/rpc/plain.h"
#include "tilewire/v1/regions.pb.h"

namespace tilewire::rpc {
namespace {

void ToProto(const engine::RegionFacts& facts, v1::RegionInfo* out) {
  out->set_region(facts.id);
  out->mutable_shared_memory()->set_name(facts.request.name);
  out->mutable_shared_memory()->set_offset(facts.request.offset);
  out->mutable_shared_memory()->set_bytes(facts.request.bytes);
  out->set_writable(facts.request.writable);
  out->set_age_seconds(facts.age_seconds);
  out->set_expires_seconds(std::max(facts.expires_seconds, 0.0));
  out->set_idle_seconds(facts.idle_seconds);
  out->set_users(facts.users);
}

Result<engine::RegionRequest> ParseRegister(UnaryCall& call) {
  TILEWIRE_ASSIGN_OR_RETURN(const auto request, ParsePlain<v1::RegisterRequest>(&call.request));
  if (!request.has_shared_memory()) return BadValue("memory", "not set", "shared_memory");
  return engine::RegionRequest{.name = request.shared_memory().name(),
                               .offset = request.shared_memory().offset(),
                               .bytes = request.shared_memory().bytes(),
                               .writable = request.writable(),
                               .seconds = request.ttl_seconds()};
}

}  // namespace

Task<Status> ServeRegister(UnaryCall& call, grpc::ByteBuffer* reply) {
  auto request = ParseRegister(call);
  if (!request) co_return request.error();
  if (call.shared().draining.load())
    co_return Status(Code::kUnavailable, "DRAINING", "the server is draining; try another");
  // Opening, mapping and pinning take their time: the store does it on a thread of its own.
  const auto facts = co_await OnQueue<Result<engine::RegionFacts>>(call.queue(), [&](auto resume) {
    call.engine().regions().Register(call.record().identity, *request, std::move(resume));
  });
  if (!facts) co_return facts.error();
  if (call.cancelled()) {  // nobody will ever know the id
    (void)call.engine().regions().Unregister(facts->id, call.record().identity).ok();
    co_return Status(Code::kCancelled, "CANCELLED", "the client is gone");
  }
  v1::RegionInfo info;
  ToProto(*facts, &info);
  *reply = Plain(info);
  co_return Status();
}

Task<Status> ServeUnregister(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::UnregisterRequest>(&call.request);
  if (!request) co_return request.error();
  const Status status = call.engine().regions().Unregister(request->region(), call.record().identity);
  if (!status.ok()) co_return status;
  *reply = Plain(v1::UnregisterResponse());
  co_return Status();
}

Task<Status> ServeListRegions(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::ListRegionsRequest>(&call.request);
  if (!request) co_return request.error();
  const auto wanted = PageOf(request->page_size(), request->page());
  if (!wanted) co_return wanted.error();
  const auto page = call.engine().regions().List(call.record().identity, wanted->begin, wanted->size);
  v1::ListRegionsResponse response;
  for (const engine::RegionFacts& facts : page.regions) ToProto(facts, response.add_regions());
  if (page.next > 0) response.set_next_page(std::to_string(page.next));
  response.set_registered_bytes(static_cast<uint64_t>(page.registered_bytes));
  response.set_quota_bytes(static_cast<uint64_t>(page.quota_bytes));
  *reply = Plain(response);
  co_return Status();
}

}  // namespace tilewire::rpc

#include "server/rpc/calls/arrays.h"

#include <algorithm>

#include "server/base/limits.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/references.h"
#include "server/rpc/transport/plain.h"
#include "tilewire/v1/arrays.pb.h"

namespace tilewire::rpc {
namespace {

void ToProto(const engine::ArrayFacts& facts, const std::string& device, v1::ArrayInfo* out) {
  out->set_array(facts.id);
  rpc::ToProto(facts.spec, out->mutable_spec());
  out->set_device_bytes(static_cast<uint64_t>(facts.device_bytes));
  out->set_device(device);
  out->set_evictable(facts.evictable);
  out->set_age_seconds(facts.age_seconds);
  out->set_expires_seconds(std::max(facts.expires_seconds, 0.0));
  out->set_idle_seconds(facts.idle_seconds);
  out->set_users(facts.users);
}

struct Getting {
  std::unique_ptr<engine::Operation> operation;
  engine::JobOptions options;
  size_t chunk_bytes = 0;
};

Result<Getting> ParseGet(GetCall& call) {
  TILEWIRE_ASSIGN_OR_RETURN(const auto request, ParsePlain<v1::GetRequest>(&call.request));
  Getting getting;
  if (request.options().has_store())
    return BadValue("options.store", "set", "not set: the array is stored already");
  TILEWIRE_ASSIGN_OR_RETURN(getting.options, JobOptionsOf(request.options()));
  TILEWIRE_ASSIGN_OR_RETURN(getting.chunk_bytes, OutputChunkBytes(request.options()));
  getting.options.streams =
      static_cast<int>(std::clamp<uint32_t>(request.options().streams(), 1, kMaxStreams));
  TILEWIRE_ASSIGN_OR_RETURN(engine::ArrayUse use,
                            call.engine().arrays().Use(request.array(), call.identity(), "array"));
  getting.operation = engine::MakePass(use->spec(), "get");
  Finder finder = call.finder();
  TILEWIRE_RETURN_IF_ERROR(Complete(request.options(), {{std::move(use)}, {}}, &finder, &getting.options));
  return getting;
}

}  // namespace

Task<Status> GetCall::Serve() {
  auto getting = ParseGet(*this);
  if (!getting) co_return getting.error();
  auto opened = co_await OpenJob(std::move(getting->operation), std::move(getting->options), true);
  if (!opened) co_return opened.error();
  job = *opened;
  idle_watch().opened = true;
  v1::ExecuteResponse response;
  FillOpened(*this, response.mutable_opened());
  if (!co_await Write(*this, response)) co_return Disconnected();
  std::vector<std::string> inlined;
  const Status sent = co_await SendOutput(*this, getting->chunk_bytes, &inlined);
  if (!sent.ok()) co_return sent;
  co_return co_await SendResult(*this, std::move(inlined));
}

Task<Status> ServeStat(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::StatRequest>(&call.request);
  if (!request) co_return request.error();
  const auto facts = call.engine().arrays().Stat(request->array(), call.identity());
  if (!facts) co_return facts.error();
  v1::ArrayInfo info;
  ToProto(*facts, call.engine().facts().id, &info);
  *reply = Plain(info);
  co_return Status();
}

Task<Status> ServeList(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::ListRequest>(&call.request);
  if (!request) co_return request.error();
  const auto wanted = PageOf(request->page_size(), request->page());
  if (!wanted) co_return wanted.error();
  const auto page = call.engine().arrays().List(call.identity(), wanted->begin, wanted->size,
                                                {.bytes = call.own_limits().array_bytes});
  v1::ListResponse response;
  for (const engine::ArrayFacts& facts : page.items)
    ToProto(facts, call.engine().facts().id, response.add_arrays());
  if (page.next > 0) response.set_next_page(std::to_string(page.next));
  response.set_stored_bytes(static_cast<uint64_t>(page.held_bytes));
  response.set_quota_bytes(static_cast<uint64_t>(page.quota_bytes));
  *reply = Plain(response);
  co_return Status();
}

Task<Status> ServeDelete(UnaryCall& call, grpc::ByteBuffer* reply) {
  const auto request = ParsePlain<v1::DeleteRequest>(&call.request);
  if (!request) co_return request.error();
  if (Status status = call.engine().arrays().Delete(request->array(), call.identity()); !status.ok())
    co_return status;
  *reply = Plain(v1::DeleteResponse());
  co_return Status();
}

}  // namespace tilewire::rpc

#include "server/rpc/calls/identity.h"

#include <algorithm>
#include <random>

#include "server/base/limits.h"

namespace tilewire::rpc {

std::string Identity(const grpc::ServerContextBase& context, const std::string& header) {
  constexpr size_t kMaxBytes = 256;
  if (header.empty()) return "anonymous";
  const auto found = context.client_metadata().find(header);
  if (found == context.client_metadata().end()) return "anonymous";
  std::string value(found->second.data(), found->second.size());
  const bool visible = std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  return value.empty() || value.size() > kMaxBytes || !visible ? "anonymous" : value;
}

std::string MakeRequestId() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const uint64_t bits = random();
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[bits >> shift & 15];
  return id;
}

std::string IncomingText(const grpc::ServerContextBase& context, const std::string& key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  const std::string text(found->second.data(), found->second.size());
  const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return visible && text.size() <= kMaxRequestIdBytes ? text : std::string();
}

void Introduce(grpc::ServerContextBase* context, const std::string& identity_header, CallRecord* record) {
  record->request_id = IncomingText(*context, "x-request-id");
  if (record->request_id.empty()) record->request_id = MakeRequestId();
  record->traceparent = IncomingText(*context, "traceparent");
  record->peer = context->peer();
  record->identity = Identity(*context, identity_header);
  context->AddInitialMetadata("x-request-id", record->request_id);
  if (!record->traceparent.empty()) context->AddInitialMetadata("traceparent", record->traceparent);
}

}  // namespace tilewire::rpc

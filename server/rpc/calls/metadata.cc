#include "server/rpc/calls/metadata.h"

#include <grpc/grpc_security_constants.h>
#include <grpc/support/time.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/limits.h"
#include "server/rpc/identity/rules.h"
#include "server/rpc/listener/peer.h"

namespace tilewire::rpc {
namespace {

constexpr const char* kAnonymous = "anonymous";

/// A metadata key's value; empty where it is missing, unprintable or over 128 bytes.
std::string IncomingText(const grpc::ServerContextBase& context, const std::string& key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  const std::string text(found->second.data(), found->second.size());
  const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return visible && text.size() <= kMaxRequestIdBytes ? text : std::string();
}

/// All values of a metadata key.
std::vector<std::string_view> Incoming(const grpc::ServerContextBase& context, const std::string& key) {
  std::vector<std::string_view> values;
  const auto [begin, end] = context.client_metadata().equal_range(key);
  for (auto i = begin; i != end; ++i) values.emplace_back(i->second.data(), i->second.size());
  return values;
}

std::vector<std::string> Values(const grpc::AuthContext& connection, const std::string& property) {
  std::vector<std::string> values;
  for (const auto& value : connection.FindPropertyValues(property))
    values.emplace_back(value.data(), value.size());
  return values;
}

/// The certificate that the client showed, which gRPC verified, or none.
std::optional<CertificateNames> CertificateOf(const grpc::ServerContextBase& context) {
  const auto connection = context.auth_context();
  if (!connection || connection->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty())
    return std::nullopt;
  CertificateNames names{.uris = Values(*connection, GRPC_PEER_URI_PROPERTY_NAME),
                         .dns = Values(*connection, GRPC_PEER_DNS_PROPERTY_NAME)};
  const auto common_names = Values(*connection, GRPC_X509_CN_PROPERTY_NAME);
  if (!common_names.empty()) names.common_name = common_names.front();
  return names;
}

/// When the client's deadline is. Not by the wall clock, which may be set while the call runs.
TimePoint DeadlineOf(const grpc::ServerContextBase& context) {
  constexpr int64_t kLongest = int64_t{365} * 24 * 3600;  // seconds; later is never
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kLongest) return TimePoint::max();
  return Clock::now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

Result<Identity> Judge(const grpc::ServerContextBase& context, const CallContext& shared,
                       const CallCredentials& known) {
  const IdentityRules& rules = shared.identity_rules;
  Presented presented;
  if (shared.credentials->has_tls()) presented.certificate = CertificateOf(context);
  if (known.tokens || known.jwks) presented.authorization = Incoming(context, "authorization");
  if (!rules.header.empty()) presented.header = Incoming(context, rules.header);
  return Identify(presented, rules, {known.tokens.get(), known.jwks.get()}, std::chrono::system_clock::now());
}

}  // namespace

std::optional<Clock::duration> Metadata::TimeLeft() const {
  if (deadline == TimePoint::max()) return std::nullopt;
  return deadline - Clock::now();
}

std::string MakeRequestId() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const uint64_t bits = random();
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[bits >> shift & 15];
  return id;
}

Metadata ReadMetadata(grpc::ServerContextBase* context, const CallContext& shared,
                      const std::string& probe_token) {
  Metadata metadata{.request_id = IncomingText(*context, "x-request-id"),
                    .traceparent = IncomingText(*context, "traceparent"),
                    .peer = context->peer(),
                    .deadline = DeadlineOf(*context)};
  metadata.own = !probe_token.empty() && IncomingText(*context, "x-tilewire-probe") == probe_token;
  metadata.judged_by = shared.credentials->for_calls();
  const auto identity =
      metadata.own ? Result<Identity>(Identity{}) : Judge(*context, shared, *metadata.judged_by);
  if (identity) {
    metadata.identity = identity->Text();
    metadata.share =
        *identity == Identity{} ? metadata.identity + " " + PeerGroup(metadata.peer) : metadata.identity;
  } else {
    metadata.refused = identity.error();
  }
  if (metadata.request_id.empty()) metadata.request_id = MakeRequestId();
  context->AddInitialMetadata("x-request-id", metadata.request_id);
  if (!metadata.traceparent.empty()) context->AddInitialMetadata("traceparent", metadata.traceparent);
  return metadata;
}

}  // namespace tilewire::rpc

#include "server/rpc/calls/metadata.h"

#include <grpc/grpc_security_constants.h>
#include <grpc/support/time.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/limits.h"
#include "server/base/per_thread.h"
#include "server/rpc/identity/last_token.h"
#include "server/rpc/identity/rules.h"
#include "server/rpc/identity/tls_files.h"
#include "server/rpc/listener/peer.h"

namespace tilewire::rpc {
namespace {

/// What a call's metadata say under the keys that mean something, found in one walk.
struct Told {
  std::string request_id, traceparent;  ///< empty where missing, unprintable or over 128 bytes
  std::string_view probe;
  PresentedValues authorization, header;
};

std::string Visible(std::string_view text) {
  const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return visible && text.size() <= kMaxRequestIdBytes ? std::string(text) : std::string();
}

/// `header`: the key by which proxies name callers; empty: none does. Of other keys that are there more than
/// once the first counts.
Told Walk(const grpc::ServerContextBase& context, std::string_view header) {
  Told told;
  std::string_view before;
  for (const auto& [key_ref, value_ref] : context.client_metadata()) {
    const std::string_view key(key_ref.data(), key_ref.size()), value(value_ref.data(), value_ref.size());
    const bool first = key != std::exchange(before, key);
    if (!header.empty() && key == header) told.header.Add(value);
    if (key == "authorization") told.authorization.Add(value);
    if (!first) continue;
    if (key == "x-request-id") told.request_id = Visible(value);
    if (key == "traceparent") told.traceparent = Visible(value);
    if (key == "x-tilewire-probe") told.probe = value;
  }
  return told;
}

std::vector<std::string> Values(const grpc::AuthContext& connection, const std::string& property) {
  std::vector<std::string> values;
  for (const auto& value : connection.FindPropertyValues(property))
    values.emplace_back(value.data(), value.size());
  return values;
}

/// When certificates of the last callers of a thread are over: reading one takes longer than a small call.
struct LastCertificate {
  std::string pem;
  std::optional<WallTime> ends;
};

std::optional<WallTime> EndOf(const grpc::string_ref& pem, const std::string& peer) {
  auto& known = PerThread<std::array<LastCertificate, 64>>();
  LastCertificate& last = known[PeerSlot(peer, known.size())];
  if (pem != last.pem) {
    last.pem.assign(pem.data(), pem.size());
    last.ends = EndOfCertificate(last.pem);
  }
  return last.ends;
}

/// The certificate that the client showed, which gRPC verified, or none.
std::optional<CertificateNames> CertificateOf(const grpc::ServerContextBase& context,
                                              const std::string& peer) {
  const auto connection = context.auth_context();
  if (!connection) return std::nullopt;
  const auto pems = connection->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pems.empty()) return std::nullopt;
  CertificateNames names{.uris = Values(*connection, GRPC_PEER_URI_PROPERTY_NAME),
                         .dns = Values(*connection, GRPC_PEER_DNS_PROPERTY_NAME)};
  const auto common_names = Values(*connection, GRPC_X509_CN_PROPERTY_NAME);
  if (!common_names.empty()) names.common_name = common_names.front();
  names.ends = EndOf(pems.front(), peer);
  return names;
}

/// When the client's deadline is. Not by the wall clock, which may be set while the call runs.
TimePoint DeadlineOf(const grpc::ServerContextBase& context) {
  constexpr int64_t kNever = int64_t{365} * 24 * 3600;  // seconds; later is never
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kNever) return TimePoint::max();
  return Clock::now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

void NameCaller(const Identity& identity, Metadata* metadata) {
  metadata->identity = identity.Text();
  metadata->share =
      identity == Identity{} ? metadata->identity + " " + PeerGroup(metadata->peer) : metadata->identity;
}

/// Says who calls, or why nobody knows.
void Judge(const grpc::ServerContextBase& context, const CallContext& shared, const Told& told,
           Metadata* metadata) {
  const BearerFiles files{metadata->judged_by->tokens.get(), metadata->judged_by->jwks.get()};
  Presented presented{.authorization = told.authorization, .header = told.header};
  if (shared.credentials->has_tls()) presented.certificate = CertificateOf(context, metadata->peer);
  LastToken* last = nullptr;
  if (TokenAloneDecides(presented, shared.identity_rules, files)) {
    last = &PerThread<LastTokens>().Of(told.authorization.first);
    const std::string* const name =
        last->Names(*files.tokens, told.authorization.first, &std::chrono::system_clock::now);
    if (name != nullptr) {
      metadata->identity = metadata->share = *name;
      return;
    }
  }
  const auto identity = Identify(presented, shared.identity_rules, files, std::chrono::system_clock::now());
  if (!identity) {
    metadata->refused = identity.error();
    return;
  }
  NameCaller(*identity, metadata);
  if (last != nullptr && identity->kind == IdentityKind::kToken)
    last->Set(*files.tokens, told.authorization.first, metadata->identity);
}

}  // namespace

std::optional<Clock::duration> Metadata::TimeLeft() const {
  if (deadline == TimePoint::max()) return std::nullopt;
  return deadline - Clock::now();
}

namespace {

struct SeededRandom : std::mt19937_64 {
  SeededRandom() : std::mt19937_64(std::random_device{}()) {}
};

}  // namespace

std::string MakeRequestId() {
  const uint64_t bits = PerThread<SeededRandom>()();
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[bits >> shift & 15];
  return id;
}

Metadata ReadMetadata(grpc::ServerContextBase* context, const CallContext& shared,
                      const std::string& probe_token) {
  Told told = Walk(*context, shared.identity_rules.header);
  Metadata metadata{.request_id = std::move(told.request_id),
                    .traceparent = std::move(told.traceparent),
                    .peer = context->peer(),
                    .deadline = DeadlineOf(*context)};
  metadata.own = !probe_token.empty() && told.probe == probe_token;
  metadata.judged_by = shared.credentials->for_calls();
  if (metadata.own)
    NameCaller(Identity{}, &metadata);
  else
    Judge(*context, shared, told, &metadata);
  if (metadata.request_id.empty()) metadata.request_id = MakeRequestId();
  context->AddInitialMetadata("x-request-id", metadata.request_id);
  if (!metadata.traceparent.empty()) context->AddInitialMetadata("traceparent", metadata.traceparent);
  return metadata;
}

}  // namespace tilewire::rpc

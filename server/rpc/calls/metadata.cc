#include "server/rpc/calls/metadata.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "server/base/limits.h"
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

}  // namespace

std::optional<Clock::duration> Metadata::TimeLeft() const {
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = deadline - std::chrono::system_clock::now();
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::duration_cast<Clock::duration>(left);
}

std::string Metadata::Share() const {
  return identity == kAnonymous ? identity + " " + PeerGroup(peer) : identity;
}

Result<std::string> Identity(const grpc::ServerContextBase& context, const std::string& header) {
  constexpr size_t kMaxBytes = 256;
  if (header.empty()) return kAnonymous;
  const auto [begin, end] = context.client_metadata().equal_range(header);
  const auto refuse = [&](std::string value) {
    return Fail(
        Status({.code = Code::kUnauthenticated,
                .reason = "IDENTITY",
                .message = "the header " + header + ", which names the caller, is " + value +
                           "; the server's proxy must set it, once",
                .field = header,
                .value = std::move(value),
                .allowed = "1 to " + std::to_string(kMaxBytes) + " printable ASCII characters, once"}));
  };
  if (begin == end) return refuse("missing");
  if (std::next(begin) != end) return refuse("there " + std::to_string(std::distance(begin, end)) + " times");
  std::string value(begin->second.data(), begin->second.size());
  if (value.empty()) return refuse("empty");
  if (value.size() > kMaxBytes) return refuse(std::to_string(value.size()) + " characters long");
  if (!std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; }))
    return refuse("not printable");
  return value;
}

std::string MakeRequestId() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const uint64_t bits = random();
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[bits >> shift & 15];
  return id;
}

Metadata ReadMetadata(grpc::ServerContextBase* context, const std::string& identity_header,
                      const std::string& probe_token) {
  Metadata metadata{.request_id = IncomingText(*context, "x-request-id"),
                    .traceparent = IncomingText(*context, "traceparent"),
                    .peer = context->peer(),
                    .deadline = context->deadline()};
  metadata.own = !probe_token.empty() && IncomingText(*context, "x-tilewire-probe") == probe_token;
  auto identity = Identity(*context, metadata.own ? "" : identity_header);
  if (identity) {
    metadata.identity = *std::move(identity);
  } else {
    metadata.refused = identity.error();
  }
  if (metadata.request_id.empty()) metadata.request_id = MakeRequestId();
  context->AddInitialMetadata("x-request-id", metadata.request_id);
  if (!metadata.traceparent.empty()) context->AddInitialMetadata("traceparent", metadata.traceparent);
  return metadata;
}

}  // namespace tilewire::rpc

#include "server/rpc/identity.h"

#include <algorithm>
#include <random>

namespace tilewire::rpc {

std::string Identity(const grpc::ServerContext& context, const std::string& header) {
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

}  // namespace tilewire::rpc

#include "server/base/environment.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tilewire {
namespace {

constexpr std::string_view kPrefix = "TILEWIRE_";

constexpr std::string_view kKnown[] = {
    // tilewired; a test compares these with its flags
    "TILEWIRE_CONFIG",
    "TILEWIRE_LISTEN",
    "TILEWIRE_ADVERTISE",
    "TILEWIRE_RECEIVE_QUOTA",
    "TILEWIRE_RECEIVE_WINDOW",
    "TILEWIRE_DISTANCE_BYTES",
    "TILEWIRE_MAX_CONNECTIONS",
    "TILEWIRE_MAX_CONNECTIONS_PER_PEER",
    "TILEWIRE_CONNECTION_IDLE_SECONDS",
    "TILEWIRE_MAX_FAILED_CALLS",
    "TILEWIRE_MEMORY_BYTES",
    "TILEWIRE_HANDSHAKE_SECONDS",
    "TILEWIRE_REFLECTION",
    "TILEWIRE_TLS_CERT",
    "TILEWIRE_TLS_KEY",
    "TILEWIRE_TLS_CLIENT_CA",
    "TILEWIRE_TLS_CLIENT",
    "TILEWIRE_INSECURE",
    "TILEWIRE_TOKENS",
    "TILEWIRE_JWKS",
    "TILEWIRE_JWT_ISSUER",
    "TILEWIRE_JWT_AUDIENCE",
    "TILEWIRE_JWT_SKEW_SECONDS",
    "TILEWIRE_POLICY",
    "TILEWIRE_ANONYMOUS",
    "TILEWIRE_IDENTITY_HEADER",
    "TILEWIRE_TRUSTED_PROXY",
    "TILEWIRE_AUDIT_LOG",
    "TILEWIRE_HEALTH_LISTEN",
    "TILEWIRE_USER",
    "TILEWIRE_NO_CONFINEMENT",
    "TILEWIRE_CORE_DUMPS",
    "TILEWIRE_DEVICE",
    "TILEWIRE_LANES",
    "TILEWIRE_MAX_STREAMS",
    "TILEWIRE_BLOCK_BYTES",
    "TILEWIRE_NO_OVERLAP",
    "TILEWIRE_HOST_BYTES",
    "TILEWIRE_PINNED_BYTES",
    "TILEWIRE_DEVICE_BYTES",
    "TILEWIRE_MAX_IN_FLIGHT",
    "TILEWIRE_QUEUE_LENGTH",
    "TILEWIRE_QUEUE_SECONDS",
    "TILEWIRE_LATE_MS",
    "TILEWIRE_IDLE_SECONDS",
    "TILEWIRE_STORE_BYTES",
    "TILEWIRE_STORE_BYTES_PER_IDENTITY",
    "TILEWIRE_STORE_SECONDS",
    "TILEWIRE_LONGEST_STORE_SECONDS",
    "TILEWIRE_ALLOW_REGIONS",
    "TILEWIRE_ALLOW_DEVICE_REGIONS",
    "TILEWIRE_REGION_BYTES",
    "TILEWIRE_REGION_BYTES_PER_IDENTITY",
    "TILEWIRE_REGION_SECONDS",
    "TILEWIRE_LONGEST_REGION_SECONDS",
    "TILEWIRE_LEAST_RATE",
    "TILEWIRE_MAX_IN_FLIGHT_PER_IDENTITY",
    "TILEWIRE_SHARED_IN_FLIGHT",
    "TILEWIRE_QUEUE_LENGTH_PER_IDENTITY",
    "TILEWIRE_ARRAYS_PER_IDENTITY",
    "TILEWIRE_REGIONS_PER_IDENTITY",
    "TILEWIRE_CALLS_PER_SECOND_PER_IDENTITY",
    "TILEWIRE_BYTES_PER_SECOND_PER_IDENTITY",
    "TILEWIRE_MAX_CALLS_PER_CONNECTION",
    "TILEWIRE_MAX_STREAMS_PER_CONNECTION",
    "TILEWIRE_CALLS_PER_SECOND_PER_CONNECTION",
    "TILEWIRE_BYTES_PER_SECOND_PER_CONNECTION",
    "TILEWIRE_METRICS_LISTEN",
    "TILEWIRE_DRAIN_SECONDS",
    "TILEWIRE_LOG_FORMAT",
    "TILEWIRE_LOG_LEVEL",
    // tilewire, tilewire-load
    "TILEWIRE_SERVER",
    "TILEWIRE_TLS_CA",
    "TILEWIRE_CLIENT_CERT",
    "TILEWIRE_CLIENT_KEY",
    "TILEWIRE_TOKEN_FILE",
};

/// Of tests and of building: known, and never what somebody meant.
constexpr std::string_view kInternal[] = {"TILEWIRE_BUILD_CUDA", "TILEWIRE_SCREENSHOTS", "TILEWIRE_SEED",
                                          "TILEWIRE_TEST_EXPORTER", "TILEWIRE_TEST_SEED"};

/// Kubernetes sets TILEWIRE_SERVICE_HOST, TILEWIRE_PORT=tcp://…, TILEWIRE_PORT_50051_TCP_ADDR and more in
/// every container beside a service called tilewire, and TILEWIRE_GPU_PORT and so on beside one called
/// tilewire-gpu.
bool IsServiceLink(std::string_view name, std::string_view value) {
  constexpr std::string_view kPort = "_PORT";
  if (name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT")) return true;
  if (name.find("_SERVICE_PORT_") != name.npos) return true;
  if (name.ends_with(kPort) && value.find("://") != value.npos) return true;
  const size_t at = name.find("_PORT_");
  const size_t digit = at == name.npos ? name.size() : at + kPort.size() + 1;
  return digit < name.size() && name[digit] >= '0' && name[digit] <= '9';
}

/// Letters to insert, remove or replace to make one of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // row[j]: of the first i letters of a and the first j of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string_view Nearest(std::string_view name) {
  return *std::ranges::min_element(kKnown, {},
                                   [name](std::string_view known) { return Distance(name, known); });
}

}  // namespace

std::span<const std::string_view> KnownVariables() {
  return kKnown;
}

std::vector<UnknownVariable> UnknownVariables(const char* const* entries) {
  std::vector<UnknownVariable> unknown;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string_view entry = *entries;
    const size_t equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == entry.npos || equals + 1 == entry.size()) continue;
    const std::string_view name = entry.substr(0, equals);
    const auto is_it = [name](std::string_view known) { return known == name; };
    if (std::ranges::any_of(kKnown, is_it) || std::ranges::any_of(kInternal, is_it) ||
        IsServiceLink(name, entry.substr(equals + 1)))
      continue;
    unknown.push_back({std::string(name), Nearest(name)});
  }
  return unknown;
}

}  // namespace tilewire

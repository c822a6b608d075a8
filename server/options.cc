#include "server/options.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/base/memory.h"
#include "server/base/threads.h"
#include "server/ops/version.h"
#include "server/rpc/conversions/operations.h"
#include "server/rpc/identity/identity.h"

namespace tilewire {
namespace {

/// For connections from afar; 0: all have the same windows.
int64_t DistanceBytes(const ops::Config& config) {
  if (!config.fit_windows) return 0;
  return config.distance_bytes > 0 ? config.distance_bytes : DefaultDistanceBytes(UsableMemoryBytes());
}

/// Whose header counts. CheckSecurity has seen to it that somebody says so where there is TLS.
std::vector<rpc::Identity> TrustedProxies(const ops::Config& config) {
  if (config.trusted_proxies.empty()) return {rpc::Identity{}};
  std::vector<rpc::Identity> proxies;
  for (const std::string& text : config.trusted_proxies)
    proxies.push_back(rpc::ParseIdentity("--trusted-proxy", text).value());
  return proxies;
}

}  // namespace

engine::EngineOptions EngineOptionsOf(const ops::Config& config) {
  return {
      .lanes = config.lanes,
      .small_lanes = SmallLanes(DefaultCpuThreads()),
      .host_bytes = config.host_bytes,
      .block_bytes = config.block_bytes,
      .fit_blocks = config.fit_blocks,
      .measure_copies = true,
      .overlap = config.overlap,
      .device_bytes = config.device_bytes,
      .pinned_bytes = config.pinned_bytes > 0 ? config.pinned_bytes : DefaultPinnedBytes(UsableMemoryBytes()),
      .max_in_flight = config.max_in_flight,
      .queue_length = config.queue_length,
      .queue_seconds = config.queue_seconds,
      .max_in_flight_per_identity = static_cast<int>(config.max_in_flight_per_identity),
      .queue_length_per_identity = static_cast<int>(config.queue_length_per_identity),
      .shared_in_flight = config.shared_in_flight >= 0 ? config.shared_in_flight : 2 * DefaultCpuThreads(),
      .rates = {.calls_per_second = static_cast<double>(config.calls_per_second_per_identity),
                .bytes_per_second = static_cast<double>(config.bytes_per_second_per_identity)},
      .max_streams = config.max_streams,
      .store = {.bytes = config.store_bytes,
                .bytes_per_identity = config.store_bytes_per_identity,
                .count_per_identity = config.arrays_per_identity,
                .seconds = config.store_seconds,
                .longest_seconds = config.longest_store_seconds},
      .regions = {.prefix = config.allow_regions,
                  .bytes = config.region_bytes,
                  .bytes_per_identity = config.region_bytes_per_identity,
                  .count_per_identity = config.regions_per_identity,
                  .seconds = config.region_seconds,
                  .longest_seconds = config.longest_region_seconds,
                  .device = config.allow_device_regions},
      .operations = rpc::Operations()};
}

rpc::ServerOptions ServerOptionsOf(const ops::Config& config) {
  return {.listen = config.listen,
          .advertise = config.advertise,
          .receive = {.quota = config.receive_quota,
                      .window = config.receive_window,
                      .distance_bytes = DistanceBytes(config)},
          .connections = {.most = config.max_connections,
                          .most_per_peer = config.max_connections_per_peer,
                          .idle_seconds = config.connection_idle_seconds,
                          .handshake_seconds = config.handshake_seconds,
                          .most_failed_calls = config.max_failed_calls,
                          .memory_bytes = config.memory_bytes},
          .connection_use = {.calls = static_cast<int>(config.max_calls_per_connection),
                             .streams = static_cast<int>(config.max_streams_per_connection),
                             .calls_per_second = static_cast<double>(config.calls_per_second_per_connection),
                             .bytes_per_second = static_cast<double>(config.bytes_per_second_per_connection)},
          .idle_seconds = config.idle_seconds,
          .least_rate = static_cast<double>(config.least_rate),
          .late = std::chrono::milliseconds(config.late_ms),
          .reflection = config.reflection,
          .identity_header = config.identity_header,
          .trusted_proxies = TrustedProxies(config),
          .anonymous = config.anonymous == "allow",
          .credentials = {.tls = {.certificate = config.tls_cert,
                                  .key = config.tls_key,
                                  .client_ca = config.tls_client_ca},
                          .tokens = config.tokens,
                          .policy = config.policy,
                          .jwks = config.jwks,
                          .jwt = {.issuer = config.jwt_issuer,
                                  .audience = config.jwt_audience,
                                  .skew = std::chrono::duration<double>(config.jwt_skew_seconds)}},
          .health_listen = config.health_listen,
          .client_certificates_required = config.tls_client == "required",
          .version = std::string(ops::Version())};
}

/// Files that are read again while it serves, with their folders: who renews them puts new ones there.
ops::Confinement ConfinementOf(const ops::Config& config) {
  ops::Confinement what{.privileges = config.confine,
                        .files = config.confine,
                        .core_dumps = config.core_dumps,
                        .user = config.user};
  for (const std::string& file :
       {config.tls_cert, config.tls_key, config.tls_client_ca, config.tokens, config.jwks, config.policy}) {
    if (file.empty()) continue;
    std::error_code error;
    what.read.push_back(std::filesystem::absolute(file, error).parent_path());
    what.read.push_back(std::filesystem::canonical(file, error).parent_path());
  }
  std::vector<std::string> addresses = config.listen;
  addresses.push_back(config.health_listen);
  for (const std::string& address : addresses) {
    constexpr std::string_view kUnix = "unix:";
    if (address.starts_with(kUnix)) {
      std::error_code error;
      what.write.push_back(std::filesystem::absolute(address.substr(kUnix.size()), error).parent_path());
    } else {
      const int port = std::atoi(address.substr(address.rfind(':') + 1).c_str());
      what.low_port = what.low_port || (port > 0 && port < 1024);
    }
  }
  return what;
}

int MostThreads(const ops::Config& config) {
  return DefaultCpuThreads() + 2 * EngineOptionsOf(config).small_lanes + config.lanes + 160;
}

}  // namespace tilewire

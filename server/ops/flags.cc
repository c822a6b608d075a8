#include "server/ops/flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "server/ops/flag_forms.h"
#include "server/ops/given_flag.h"
#include "server/ops/security_flags.h"
#include "server/ops/values.h"

namespace tilewire::ops {
namespace {

constexpr int64_t kMaxMemoryBytes = int64_t{1} << 44;  // 16 TiB: more than any node has
constexpr int64_t kMinReceiveQuotaBytes = 8 * kMiB;
static_assert(kMinReceiveQuotaBytes > kMaxMessageBytes, "a message must fit, or nothing is ever received");
constexpr int64_t kMaxReceiveWindowBytes = 16 * kMiB;
constexpr int64_t kMinStagingBlocks = 4;  // two for each of two operands

Result<std::string> ParseMetricsListen(std::string_view flag, std::string_view text) {
  if (text.empty()) return std::string();
  return ParseAddress(flag, text, AddressUse::kMetrics);
}

Flag BlockBytes() {
  Flag flag =
      Bytes("block-bytes", &Config::block_bytes, kMinBlockBytes, kMaxBlockBytes, "4MiB",
            "Bytes of one block, the unit of copying; where not given, less for small arrays. Changes speed, "
            "never results");
  flag.allowed += ", a multiple of " + FormatBytes(kBlockMultiple);
  flag.store = [store = flag.store](Config* config, std::string_view text) -> Status {
    if (Status status = store(config, text); !status.ok()) return status;
    if (config->block_bytes % kBlockMultiple == 0) return Status();
    return BadValue("--block-bytes", text, "a multiple of " + FormatBytes(kBlockMultiple)).value();
  };
  return GivenTurnsOff(&Config::fit_blocks, std::move(flag));
}

void AddNetworkFlags(std::vector<Flag>* flags) {
  flags->push_back(Addresses("listen", &Config::listen, AddressUse::kListen, "localhost:50051",
                             "Address to serve gRPC on; may be repeated"));
  flags->push_back(
      Addresses("advertise", &Config::advertise, AddressUse::kAdvertise, "the listeners",
                "Address that clients are told to open further connections to; may be repeated"));
  flags->push_back(Bytes("receive-quota", &Config::receive_quota, kMinReceiveQuotaBytes, kMaxMemoryBytes,
                         "192MiB",
                         "Bytes that gRPC may hold for messages being received, over all connections"));
  flags->push_back(
      GivenTurnsOff(&Config::fit_windows,
                    Bytes("receive-window", &Config::receive_window, 0, kMaxReceiveWindowBytes, "128KiB",
                          "Bytes a stream may send unread; given, it holds from afar too; 0 lets gRPC "
                          "choose, without bounds")));
  flags->push_back(Bytes("distance-bytes", &Config::distance_bytes, kMinReceiveQuotaBytes, kMaxMemoryBytes,
                         "1GiB or 1/16 of memory", "Bytes for wider windows of connections from afar"));
  flags->push_back(Default(Whole("max-connections", &Config::max_connections, 1, 1'000'000,
                                 "Connections at once, two open files each; more are closed as they come"),
                           "what open files allow, at most 10000"));
  flags->push_back(Default(Whole("max-connections-per-peer", &Config::max_connections_per_peer, 1, 1'000'000,
                                 "Of these of one IPv4 address, one /64 of IPv6, or one local user"),
                           "half of --max-connections"));
  flags->push_back(Whole("max-failed-calls", &Config::max_failed_calls, 100, 1'000'000'000,
                         "Calls of one connection, or of one peer's together, within some ten seconds, that "
                         "may come to nothing by their client's doing until it is closed"));
  flags->push_back(
      Bytes("memory-bytes", &Config::memory_bytes, 64 * kMiB, kMaxMemoryBytes, "what the system leaves",
            "Resident memory from which connections that hold most of what no call took are closed"));
  flags->push_back(Seconds("connection-idle-seconds", &Config::connection_idle_seconds, 0.1, 86400,
                           "Seconds without a call until a connection is closed"));
  flags->push_back(Seconds("handshake-seconds", &Config::handshake_seconds, 0.1, 3600,
                           "Seconds that a client may take to begin HTTP/2 on a new connection"));
  flags->push_back(Switch("reflection", &Config::reflection, true, "Serve gRPC reflection"));
}

void AddEngineFlags(std::vector<Flag>* flags) {
  flags->push_back(Text("device", "DEVICE", &Config::device, "auto, cpu, cuda, cuda:N", ParseDevice,
                        "Device to compute on; auto takes the GPU where one works, else the CPU"));
  flags->push_back(
      Whole("lanes", &Config::lanes, 1, kMaxLanes, "Streams of the device that work side by side"));
  flags->push_back(BlockBytes());
  flags->push_back(Switch("no-overlap", &Config::overlap, false,
                          "Do not overlap copies and kernels; for study, results are the same"));
  flags->push_back(Bytes("host-bytes", &Config::host_bytes, 0, kSmallJobBytes, "8KiB",
                         "Operands, of a call together, that the host computes beside a GPU, sooner than a "
                         "launch and to the same bits; 0: none"));
  flags->push_back(Bytes("pinned-bytes", &Config::pinned_bytes, kMiB, kMaxMemoryBytes,
                         "1GiB or 1/8 of memory", "Bytes of pinned host memory, at least four blocks"));
  flags->push_back(Bytes("device-bytes", &Config::device_bytes, kMiB, kMaxMemoryBytes, "80% of free",
                         "Bytes of device memory for arrays; taken as needed"));
  flags->push_back(Whole("max-streams", &Config::max_streams, 1, kMaxStreams,
                         "Streams, best on a connection each, that may carry one job"));
  flags->push_back(Whole("max-in-flight", &Config::max_in_flight, 1, 65536, "Jobs that run at once"));
  flags->push_back(
      Whole("queue-length", &Config::queue_length, 0, 1'000'000, "Jobs that may wait for admission"));
  flags->push_back(Seconds("queue-seconds", &Config::queue_seconds, 0, 3600,
                           "Seconds that a job may wait before it is refused as BUSY"));
  flags->push_back(Whole("late-ms", &Config::late_ms, 0, 10'000,
                         "Milliseconds that unary calls may wait, and as long as calls take, before more are "
                         "refused as BUSY; clients are asked to hold calls back where they wait for as long, "
                         "those of up to 32 KiB for a quarter; 0: any time"));
  flags->push_back(
      Seconds("idle-seconds", &Config::idle_seconds, 0.1, 86400,
              "Seconds within which a stream must carry a block, or lose its job; N times as "
              "long for one of N streams; the message of a unary call has that and as "
              "long as 4 MiB take at --least-rate, or longer while its connection keeps to that rate"));
}

void AddStoreFlags(std::vector<Flag>* flags) {
  constexpr double kYear = 31'536'000;
  flags->push_back(Bytes("store-bytes", &Config::store_bytes, kMiB, kMaxMemoryBytes,
                         "half of what large jobs may have",
                         "Bytes of device memory, part of --device-bytes, that stored arrays may hold"));
  flags->push_back(Bytes("store-bytes-per-identity", &Config::store_bytes_per_identity, kMiB, kMaxMemoryBytes,
                         "--store-bytes", "Bytes of these that the arrays of one caller may hold"));
  flags->push_back(Seconds("store-seconds", &Config::store_seconds, 1, kYear,
                           "Seconds that an array is kept where its caller does not say"));
  flags->push_back(Seconds("longest-store-seconds", &Config::longest_store_seconds, 1, kYear,
                           "Seconds that a caller may ask for"));
}

void AddRegionFlags(std::vector<Flag>* flags) {
  constexpr double kYear = 31'536'000;
  flags->push_back(Text("allow-regions", "PREFIX", &Config::allow_regions, "a slash and 1 to 199 characters",
                        ParseRegionPrefix,
                        "Let clients on this host register POSIX shared memory whose names begin so"));
  flags->push_back(Switch("allow-device-regions", &Config::allow_device_regions, true,
                          "Let clients on this host register memory of the GPU by CUDA IPC handle"));
  flags->push_back(Bytes("region-bytes", &Config::region_bytes, kMiB, kMaxMemoryBytes,
                         "half of usable memory",
                         "Bytes of memory, in whole pages, that clients may register"));
  flags->push_back(Bytes("region-bytes-per-identity", &Config::region_bytes_per_identity, kMiB,
                         kMaxMemoryBytes, "--region-bytes", "Bytes of these that one caller may register"));
  flags->push_back(Seconds("region-seconds", &Config::region_seconds, 1, kYear,
                           "Seconds that an unused region is kept where its caller does not say"));
  flags->push_back(Seconds("longest-region-seconds", &Config::longest_region_seconds, 1, kYear,
                           "Seconds that a caller may ask for a region"));
}

void AddOperatorFlags(std::vector<Flag>* flags) {
  flags->push_back(Text("metrics-listen", "ADDR", &Config::metrics_listen,
                        "host:port, [v6]:port; port 0 picks one", ParseMetricsListen,
                        "Address to serve Prometheus metrics on, at /metrics"));
  flags->push_back(Seconds("drain-seconds", &Config::drain_seconds, 0, 86400,
                           "Seconds that running calls get to end after SIGTERM or SIGINT"));
  flags->push_back(
      Choice("log-format", &Config::log_format, {"text", "json"}, "Form of log lines on stderr"));
  flags->push_back(Choice("log-level", &Config::log_level, {"trace", "debug", "info", "warn", "error"},
                          "Least severe level that is logged; info has a line for each call"));
}

}  // namespace

std::string Flag::env() const {
  std::string variable = "TILEWIRE_";
  for (char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return variable;
}

const std::vector<Flag>& Flags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all;
    AddNetworkFlags(&all);
    AddSecurityFlags(&all);
    AddEngineFlags(&all);
    AddStoreFlags(&all);
    AddRegionFlags(&all);
    AddShareFlags(&all);
    AddOperatorFlags(&all);
    return all;
  }();
  return flags;
}

Status CheckConfig(const Config& config) {
  const int64_t least = kMinStagingBlocks * config.block_bytes;
  if (config.pinned_bytes != 0 && config.pinned_bytes < least) {
    return BadValue("--pinned-bytes", FormatBytes(config.pinned_bytes),
                    "at least four blocks of --block-bytes, " + FormatBytes(least))
        .value();
  }
  if (config.store_seconds > config.longest_store_seconds)
    return BadValue("--store-seconds", SecondsText(config.store_seconds),
                    "at most --longest-store-seconds, " + SecondsText(config.longest_store_seconds))
        .value();
  if (config.region_seconds > config.longest_region_seconds)
    return BadValue("--region-seconds", SecondsText(config.region_seconds),
                    "at most --longest-region-seconds, " + SecondsText(config.longest_region_seconds))
        .value();
  return CheckSecurity(config);
}

}  // namespace tilewire::ops

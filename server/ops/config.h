// What the operator asked for: the command line, the environment and the configuration file, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/base/limits.h"
#include "server/rpc/listener/limits.h"
#include "server/rpc/transport/receive_limits.h"

namespace tilewire::ops {

/// Every value is within the range that `--help` and the README name for its flag.
struct Config {
  std::vector<std::string> listen{"localhost:50051"};  ///< host:port, [v6]:port, unix:PATH; port 0 picks one
  std::vector<std::string> advertise;                  ///< where Joins go; empty: the listeners
  std::string device = "auto";                         ///< auto, cpu, cuda, cuda:N
  int lanes = 4;
  int max_streams = kDefaultMaxStreams;
  int64_t block_bytes = 4 * kMiB;
  bool fit_blocks = true;  ///< smaller blocks for arrays of few; off once --block-bytes was given
  bool overlap = true;
  int64_t host_bytes = 8 * kKiB;  ///< operands of a call that the host computes beside a GPU
  int64_t pinned_bytes = 0;       ///< 0: 1 GiB or an eighth of usable memory (server/base/memory.h)
  int64_t device_bytes = 0;       ///< 0: 80% of what is free on the device
  int max_in_flight = 64;
  int queue_length = 256;
  double queue_seconds = 10, idle_seconds = 30;
  int64_t store_bytes = 0;               ///< of arrays that stay; 0: half of what large jobs may have
  int64_t store_bytes_per_identity = 0;  ///< 0: the same
  double store_seconds = 3600, longest_store_seconds = 86400;
  std::string allow_regions;              ///< prefix of names; empty: off
  bool allow_device_regions = false;      ///< memory of the device, by handle
  int64_t region_bytes = 0;               ///< of registered memory; 0: half of usable memory
  int64_t region_bytes_per_identity = 0;  ///< 0: the same
  double region_seconds = 3600, longest_region_seconds = 86400;
  int64_t receive_quota = rpc::kDefaultReceiveQuotaBytes;
  int64_t receive_window = rpc::kDefaultReceiveWindowBytes;  ///< 0: what gRPC estimates
  bool fit_windows = true;     ///< wider ones for connections from afar; off once --receive-window was given
  int64_t distance_bytes = 0;  ///< for these; 0: a sixteenth of usable memory, 1 GiB at most
  int max_connections = 0;     ///< 0: what open files allow, 10,000 at most
  int max_connections_per_peer = 0;  ///< 0: half of max_connections
  int max_failed_calls = rpc::ConnectionLimits().most_failed_calls;
  int64_t memory_bytes = 0;  ///< 0: what control groups and the machine leave
  double connection_idle_seconds = rpc::ConnectionLimits().idle_seconds;
  double handshake_seconds = rpc::ConnectionLimits().handshake_seconds;
  /// Of each caller; 0: no bound of his own.
  int64_t max_in_flight_per_identity = 0, queue_length_per_identity = 0;
  int shared_in_flight = -1;  ///< for callers that are active together; -1: twice the processors
  int64_t arrays_per_identity = 0, regions_per_identity = 0;  ///< 0: MostOfOne()
  int64_t calls_per_second_per_identity = 0, bytes_per_second_per_identity = 0;
  /// Of each TCP connection; 0: no bound.
  int64_t max_calls_per_connection = 0, max_streams_per_connection = 0;
  int64_t calls_per_second_per_connection = 0, bytes_per_second_per_connection = 0;
  int late_ms = 20;               ///< that unary calls may wait before more are refused; 0: any time
  int64_t least_rate = 64 << 10;  ///< bytes a second of a job, while others wait; 0: any
  std::string metrics_listen;     ///< empty: off
  std::string health_listen;      ///< empty: off
  bool reflection = false;
  std::string tls_cert, tls_key, tls_client_ca;  ///< files; empty: off
  std::string tls_client = "optional";           ///< or required
  bool insecure = false;                         ///< clear text beyond this host
  std::string tokens;                            ///< file; empty: off
  std::string jwks;                              ///< file; empty: off
  std::string jwt_issuer, jwt_audience;          ///< what those tokens must say
  double jwt_skew_seconds = 60;
  std::string policy;                        ///< file; empty: everybody may do everything
  std::string anonymous = "allow";           ///< or deny
  std::string identity_header;               ///< lower case; empty: off
  std::vector<std::string> trusted_proxies;  ///< Identity::Text(); empty: anonymous ones
  bool confine = true;                       ///< give up what serving needs none of (confinement.h)
  bool core_dumps = false;                   ///< arrays are in them
  std::string user;                          ///< to become; empty: stay
  double drain_seconds = 30;
  std::string audit_log;  ///< file; empty: off
  std::string log_format = "text", log_level = "info";
};

struct ParseOutcome {
  std::optional<Config> config;  ///< none: what had to be said is printed, leave with exit_code
  int exit_code = 0;             ///< 0 after --help and --version; 2 after bad usage or configuration
  bool check_only = false;       ///< --check-config: look at the rest of it, say so, and leave
};

/// Reads flags, then TILEWIRE_<FLAG> for flags not given (an empty variable counts as not set), then the file
/// named by --config for what neither gave, then defaults. Help and version go to stdout, errors to stderr;
/// each error names the flag, where the value came from, the value and what is allowed. Call before threads
/// start (getenv).
ParseOutcome ParseCommandLine(int argc, const char* const* argv);

}  // namespace tilewire::ops

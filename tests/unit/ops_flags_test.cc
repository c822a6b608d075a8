// The table of flags: its texts agree with Config and with the README.
#include "server/ops/flags.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace tilewire::ops {
namespace {

/// A Config with nothing of the defaults in it.
Config Blank() {
  Config config;
  config.listen.clear();
  config.device = config.log_format = config.log_level = "";
  config.lanes = config.max_in_flight = config.queue_length = -1;
  config.block_bytes = config.receive_quota = config.receive_window = -1;
  config.least_rate = -1;
  config.late_ms = -1;
  config.queue_seconds = config.idle_seconds = config.drain_seconds = -1;
  config.store_seconds = config.longest_store_seconds = -1;
  config.connection_idle_seconds = config.handshake_seconds = -1;
  config.region_seconds = config.longest_region_seconds = -1;
  config.jwt_skew_seconds = -1;
  config.allow_device_regions = true;
  config.overlap = false;
  config.insecure = true;
  config.anonymous = config.tls_client = "";
  config.reflection = true;
  return config;
}

TEST(FlagTable, DefaultsInTextAreTheDefaults) {
  const std::set<std::string> in_words{"advertise",
                                       "pinned-bytes",
                                       "device-bytes",
                                       "metrics-listen",
                                       "identity-header",
                                       "tls-cert",
                                       "tls-key",
                                       "tls-client-ca",
                                       "tokens",
                                       "jwks",
                                       "jwt-issuer",
                                       "jwt-audience",
                                       "policy",
                                       "trusted-proxy",
                                       "audit-log",
                                       "health-listen",
                                       "store-bytes",
                                       "store-bytes-per-identity",
                                       "allow-regions",
                                       "max-connections",
                                       "max-connections-per-peer",
                                       "memory-bytes",
                                       "distance-bytes",
                                       "region-bytes",
                                       "region-bytes-per-identity",
                                       "max-in-flight-per-identity",
                                       "shared-in-flight",
                                       "queue-length-per-identity",
                                       "arrays-per-identity",
                                       "regions-per-identity",
                                       "calls-per-second-per-identity",
                                       "bytes-per-second-per-identity",
                                       "max-calls-per-connection",
                                       "max-streams-per-connection",
                                       "calls-per-second-per-connection",
                                       "bytes-per-second-per-connection"};
  Config config = Blank();
  for (const Flag& flag : Flags()) {
    if (in_words.contains(flag.name)) continue;
    EXPECT_TRUE(flag.store(&config, flag.default_text).ok()) << flag.name;
  }
  const Config defaults;
  EXPECT_EQ(config.listen, defaults.listen);
  EXPECT_EQ(config.device, defaults.device);
  EXPECT_EQ(config.lanes, defaults.lanes);
  EXPECT_EQ(config.block_bytes, defaults.block_bytes);
  EXPECT_EQ(config.overlap, defaults.overlap);
  EXPECT_EQ(config.host_bytes, defaults.host_bytes);
  EXPECT_EQ(config.max_in_flight, defaults.max_in_flight);
  EXPECT_EQ(config.shared_in_flight, defaults.shared_in_flight);
  EXPECT_EQ(config.queue_length, defaults.queue_length);
  EXPECT_EQ(config.queue_seconds, defaults.queue_seconds);
  EXPECT_EQ(config.idle_seconds, defaults.idle_seconds);
  EXPECT_EQ(config.least_rate, defaults.least_rate);
  EXPECT_EQ(config.late_ms, defaults.late_ms);
  EXPECT_EQ(config.receive_quota, defaults.receive_quota);
  EXPECT_EQ(config.receive_window, defaults.receive_window);
  EXPECT_EQ(config.store_seconds, defaults.store_seconds);
  EXPECT_EQ(config.longest_store_seconds, defaults.longest_store_seconds);
  EXPECT_EQ(config.region_seconds, defaults.region_seconds);
  EXPECT_EQ(config.longest_region_seconds, defaults.longest_region_seconds);
  EXPECT_EQ(config.allow_device_regions, defaults.allow_device_regions);
  EXPECT_EQ(config.connection_idle_seconds, defaults.connection_idle_seconds);
  EXPECT_EQ(config.handshake_seconds, defaults.handshake_seconds);
  EXPECT_EQ(config.max_failed_calls, defaults.max_failed_calls);
  EXPECT_EQ(config.reflection, defaults.reflection);
  EXPECT_EQ(config.insecure, defaults.insecure);
  EXPECT_EQ(config.anonymous, defaults.anonymous);
  EXPECT_EQ(config.tls_client, defaults.tls_client);
  EXPECT_EQ(config.jwt_skew_seconds, defaults.jwt_skew_seconds);
  EXPECT_EQ(config.drain_seconds, defaults.drain_seconds);
  EXPECT_EQ(config.log_format, defaults.log_format);
  EXPECT_EQ(config.log_level, defaults.log_level);
}

TEST(FlagTable, BoundsOfOneCallerOrConnectionAreOffUntilGiven) {
  const std::pair<const char*, int64_t Config::*> bounds[] = {
      {"max-in-flight-per-identity", &Config::max_in_flight_per_identity},
      {"queue-length-per-identity", &Config::queue_length_per_identity},
      {"arrays-per-identity", &Config::arrays_per_identity},
      {"regions-per-identity", &Config::regions_per_identity},
      {"calls-per-second-per-identity", &Config::calls_per_second_per_identity},
      {"bytes-per-second-per-identity", &Config::bytes_per_second_per_identity},
      {"max-calls-per-connection", &Config::max_calls_per_connection},
      {"max-streams-per-connection", &Config::max_streams_per_connection},
      {"calls-per-second-per-connection", &Config::calls_per_second_per_connection},
      {"bytes-per-second-per-connection", &Config::bytes_per_second_per_connection}};
  Config config;
  for (const auto& [name, member] : bounds) {
    EXPECT_EQ(config.*member, 0) << name;
    for (const Flag& flag : Flags()) {
      if (flag.name != name) continue;
      EXPECT_FALSE(flag.store(&config, "0").ok()) << name;
      EXPECT_FALSE(flag.store(&config, "99999999999999999").ok()) << name;
      EXPECT_EQ(config.*member, 0) << name;
      EXPECT_TRUE(flag.store(&config, flag.placeholder == "N" ? "7" : "7MiB").ok()) << name;
    }
    EXPECT_EQ(config.*member, std::string_view(name).starts_with("bytes-per-second") ? 7 * kMiB : 7) << name;
  }
}

TEST(FlagTable, NamesAreUniqueAndComplete) {
  std::set<std::string> names;
  for (const Flag& flag : Flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_FALSE(flag.help.empty() || flag.allowed.empty() || flag.default_text.empty()) << flag.name;
    EXPECT_NE(flag.help.back(), '.') << flag.name;
  }
  EXPECT_EQ(Flags().front().env(), "TILEWIRE_LISTEN");
  EXPECT_EQ(names.size(), 70u);
}

TEST(FlagTable, ReadmeHasEachRow) {
  std::ifstream in(TILEWIRE_OPS_README);
  ASSERT_TRUE(in) << TILEWIRE_OPS_README;
  std::stringstream text;
  text << in.rdbuf();
  for (const Flag& flag : Flags()) {
    const std::string value = flag.placeholder.empty() ? "" : " " + flag.placeholder;
    const std::string row = "| `--" + flag.name + value + "` | " + flag.default_text + " | " + flag.allowed +
                            " | " + flag.help + " |\n";
    EXPECT_NE(text.str().find(row), std::string::npos) << "missing in server/ops/README.md:\n" << row;
  }
}

}  // namespace
}  // namespace tilewire::ops

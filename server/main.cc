// tilewired: parse, open the device, build, run, drain, exit code.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "server/base/environment.h"
#include "server/base/memory.h"
#include "server/base/threads.h"
#include "server/engine/device/cpu/device.h"
#include "server/engine/device/cuda/device.h"
#include "server/engine/engine.h"
#include "server/ops/audit_log.h"
#include "server/ops/config.h"
#include "server/ops/confinement.h"
#include "server/ops/logging.h"
#include "server/ops/metrics.h"
#include "server/ops/process.h"
#include "server/ops/version.h"
#include "server/rpc/conversions/operations.h"
#include "server/rpc/drain.h"
#include "server/rpc/identity/identity.h"
#include "server/rpc/library_log.h"
#include "server/rpc/server.h"

namespace {

using namespace tilewire;  // NOLINT(google-build-using-namespace): main wires every layer

// What scripts rely on; 2 (bad usage) comes from the parser.
constexpr int kDrained = 0, kDrainCutShort = 1, kCannotStart = 3, kDeviceFailed = 70;

int CannotStart(const Status& status) {
  ops::LogEvent(spdlog::level::critical, "cannot start", {{"reason", status.message()}});
  return kCannotStart;
}

/// `auto`: the first GPU that works, else the CPU, and the log says why.
Result<std::unique_ptr<engine::Device>> OpenDevice(const std::string& name) {
  if (name == "cpu") return engine::OpenCpuDevice(0);
  const bool automatic = name == "auto";
  const int ordinal = name.starts_with("cuda:") ? std::stoi(name.substr(5)) : 0;
  auto device = engine::OpenCudaDevice(ordinal);
  if (device || !automatic) return device;
  ops::LogEvent(spdlog::level::info, "no GPU to use, the CPU computes",
                {{"reason", device.error().message()}});
  return engine::OpenCpuDevice(0);
}

engine::EngineOptions EngineOptionsOf(const ops::Config& config) {
  return {
      .lanes = config.lanes,
      .small_lanes = std::clamp(DefaultCpuThreads() / 4, 1, 4),
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
      .rates = {.calls_per_second = static_cast<double>(config.calls_per_second_per_identity),
                .bytes_per_second = static_cast<double>(config.bytes_per_second_per_identity)},
      .max_streams = config.max_streams,
      .store = {.bytes = config.store_bytes,
                .bytes_per_identity = config.store_bytes_per_identity,
                .seconds = config.store_seconds,
                .longest_seconds = config.longest_store_seconds},
      .regions = {.prefix = config.allow_regions,
                  .bytes = config.region_bytes,
                  .bytes_per_identity = config.region_bytes_per_identity,
                  .seconds = config.region_seconds,
                  .longest_seconds = config.longest_region_seconds,
                  .device = config.allow_device_regions},
      .operations = rpc::Operations()};
}

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
          .idle_seconds = config.idle_seconds,
          .least_rate = static_cast<double>(config.least_rate),
          .reflection = config.reflection,
          .identity_header = config.identity_header,
          .trusted_proxies = TrustedProxies(config),
          .anonymous = config.anonymous == "allow",
          .credentials = {.tls = {.certificate = config.tls_cert,
                                  .key = config.tls_key,
                                  .client_ca = config.tls_client_ca},
                          .tokens = config.tokens},
          .health_listen = config.health_listen,
          .client_certificates_required = config.tls_client == "required",
          .version = std::string(ops::Version())};
}

void LogLibrary(rpc::LibrarySeverity severity, std::string_view library, std::string_view text) {
  constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                               spdlog::level::err};
  ops::LogEvent(kLevels[static_cast<size_t>(severity)], text, {{"library", library}});
}

std::string DeviceText(const engine::DeviceFacts& facts) {
  return facts.host_memory ? facts.id : facts.id + " \"" + facts.name + "\"";
}

/// Ready lines on stdout, one a listener: scripts wait for them, and then find the log's lines of the start.
void Announce(const rpc::Server& server, const engine::DeviceFacts& facts) {
  ops::FlushLog();
  for (const std::string& address : server.addresses())
    std::printf("tilewired ready %s device=%s\n", address.c_str(), DeviceText(facts).c_str());
  std::fflush(stdout);
}

/// Until every call has ended, time is up or a second signal comes.
int Drain(rpc::Server* server, double seconds) {
  ops::LogEvent(spdlog::level::info, "draining", {{"drain_seconds", seconds}});
  const auto most = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const bool idle = rpc::Drain(server, *SteadyTime(), most, &ops::WaitForSignalFor);
  ops::LogEvent(spdlog::level::info, idle ? "drained" : "drain cut short");
  return idle ? kDrained : kDrainCutShort;
}

/// Files that are read again while it serves, with their folders: who renews them puts new ones there.
ops::Confinement ConfinementOf(const ops::Config& config) {
  ops::Confinement what{.privileges = config.confine,
                        .files = config.confine,
                        .core_dumps = config.core_dumps,
                        .user = config.user};
  for (const std::string& file : {config.tls_cert, config.tls_key, config.tls_client_ca, config.tokens}) {
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

void LogNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) ops::LogEvent(spdlog::level::warn, note);
}

/// More than are ever made: lanes' and workers', and 96 of queues, libraries and all the single ones.
int MostThreads(const ops::Config& config) {
  return DefaultCpuThreads() + EngineOptionsOf(config).small_lanes + config.lanes + 96;
}

int Run(const ops::Config& config, std::shared_ptr<ops::AuditLog> audit) {
  // Now, in words: libraries end the process where they cannot have one.
  if (const Status status = CheckThreads(MostThreads(config)); !status.ok()) return CannotStart(status);
  auto device = OpenDevice(config.device);
  if (!device) return CannotStart(device.error());
  std::atomic<rpc::Server*> serving{nullptr};  // outlives the engine, whose failure handler asks for it
  auto engine = engine::Engine::Make(*std::move(device), EngineOptionsOf(config));
  if (!engine) return CannotStart(engine.error());

  ops::Metrics metrics(
      ops::Version(), DeviceText((*engine)->facts()), [&engine] { return (*engine)->stats(); },
      std::move(audit));
  if (!config.metrics_listen.empty()) {
    const auto bound = metrics.Serve(config.metrics_listen);
    if (!bound) return CannotStart(bound.error());
    ops::LogEvent(spdlog::level::info, "serving metrics", {{"address", *bound}});
  }
  (*engine)->SetFailureHandler([&serving](const Status& why) {
    ops::LogEvent(spdlog::level::critical, "the device has failed", {{"reason", why.message()}});
    if (rpc::Server* const running = serving.load()) {
      running->SetReady(false);
      running->SetLive(false);
    }
    ops::RequestStop();
  });
  auto server = rpc::Server::Start(engine->get(), &metrics, ServerOptionsOf(config));
  if (!server) return CannotStart(server.error());
  serving.store(server->get());
  if (config.confine) {
    std::vector<std::string> notes;
    if (const Status status = ops::ConfineSystemCalls(&notes); !status.ok()) return CannotStart(status);
    LogNotes(notes);
  }
  if (const std::string address = (*server)->health_address(); !address.empty())
    ops::LogEvent(spdlog::level::info, "serving health", {{"address", address}});
  Announce(**server, (*engine)->facts());

  ops::WaitForSignal();
  if ((*engine)->stats().device_failed) {
    // Failed jobs get a moment to tell their clients; there is nothing to drain on a dead device.
    (*server)->BeginDrain();
    (*server)->WaitIdle(Clock::now() + std::chrono::seconds(2));
    (*server)->Shutdown(Clock::now());
    metrics.StopServing();
    ops::FlushLog();
    std::_Exit(kDeviceFailed);  // destructors would wait for the dead device
  }
  const int code = Drain(server->get(), config.drain_seconds);
  metrics.StopServing();
  if ((*engine)->stats().device_failed) {
    ops::FlushLog();
    std::_Exit(kDeviceFailed);
  }
  serving.store(nullptr);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = ops::ParseCommandLine(argc, argv);
  if (!parsed.config) return parsed.exit_code;
  rpc::FileDescriptor audit_file;
  if (const std::string& path = parsed.config->audit_log; !path.empty()) {
    auto opened = ops::OpenAuditFile(path);
    if (!opened) {
      std::fprintf(stderr, "tilewired: cannot start: %s\n", std::string(opened.error().message()).c_str());
      return kCannotStart;
    }
    audit_file = *std::move(opened);
  }
  std::vector<std::string> notes;
  if (const Status status = ops::Confine(ConfinementOf(*parsed.config), &notes); !status.ok()) {
    std::fprintf(stderr, "tilewired: cannot start: %s\n", std::string(status.message()).c_str());
    return kCannotStart;
  }
  try {
    ops::InitLogging(parsed.config->log_format, parsed.config->log_level);
  } catch (const std::exception& e) {  // there is no log to say it in
    std::fprintf(stderr, "tilewired: cannot start: no thread for the log: %s\n", e.what());
    return kCannotStart;
  }
  const rpc::LibraryLogRoute route(&LogLibrary);
  LogNotes(notes);
  for (const auto& [name, nearest] : UnknownVariables(environ))
    ops::LogEvent(spdlog::level::warn, "unknown environment variable",
                  {{"name", name}, {"nearest", nearest}});
  std::string warning;
  if (const Status status = ops::PrepareProcess(&warning); !status.ok()) return CannotStart(status);
  if (!warning.empty()) ops::LogEvent(spdlog::level::warn, warning);
  try {
    return Run(*parsed.config, audit_file ? std::make_shared<ops::AuditLog>(std::move(audit_file)) : nullptr);
  } catch (const std::system_error& e) {
    return CannotStart(Status(Code::kUnavailable, "INTERNAL_ERROR",
                              std::string("the system refuses a thread, or another thing: ") + e.what()));
  } catch (const std::exception& e) {
    ops::LogEvent(spdlog::level::critical, "unexpected error", {{"what", e.what()}});
    return kCannotStart;
  }
}

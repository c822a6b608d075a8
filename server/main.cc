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
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "server/base/environment.h"
#include "server/base/threads.h"
#include "server/engine/device/cpu/device.h"
#include "server/engine/device/cuda/device.h"
#include "server/engine/engine.h"
#include "server/ops/audit_log.h"
#include "server/ops/config.h"
#include "server/ops/confinement.h"
#include "server/ops/failure_fold.h"
#include "server/ops/logging.h"
#include "server/ops/metrics.h"
#include "server/ops/process.h"
#include "server/ops/version.h"
#include "server/options.h"
#include "server/rpc/drain.h"
#include "server/rpc/identity/credential_files.h"
#include "server/rpc/library_log.h"
#include "server/rpc/policy_words.h"
#include "server/rpc/server.h"
#include "server/wrapped.h"

namespace {

using namespace tilewire;  // NOLINT(google-build-using-namespace): main wires every layer

// What scripts rely on; 2 (bad usage) comes from the parser too.
constexpr int kDrained = 0, kDrainCutShort = 1, kBadUsage = 2, kCannotStart = 3, kDeviceFailed = 70;

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

/// What gRPC and protobuf say. Lines that are alike are folded: gRPC has one for each handshake that fails,
/// and so whoever cannot get in could fill the log.
class LibraryLines {
 public:
  void Log(rpc::LibrarySeverity severity, std::string_view library, std::string_view text) {
    constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                 spdlog::level::err, spdlog::level::critical};
    if (severity < rpc::LibrarySeverity::kLast &&
        !fold_.Admit({.method = std::string(library), .reason = std::string(text)}))
      return;
    ops::LogEvent(kLevels[static_cast<size_t>(severity)], text, {{"library", library}});
  }

 private:
  ops::FailureFold fold_{[](const ops::FailureKind& kind, uint64_t lines) {
    ops::LogEvent(spdlog::level::warn, "lines folded",
                  {{"library", kind.method}, {"text", kind.reason}, {"lines", lines}});
  }};
};

std::string DeviceText(const engine::DeviceFacts& facts) {
  return facts.host_memory ? facts.id : facts.id + " \"" + facts.name + "\"";
}

/// Ready lines on stdout, one a listener: scripts wait for them, and then find the log's lines of the start.
void Announce(const rpc::Server& server, const engine::DeviceFacts& facts, const ops::Config& config) {
  for (const std::string& address : server.addresses())
    ops::LogEvent(spdlog::level::info, "serving calls",
                  {{"address", address},
                   {"device", facts.id},
                   {"device_name", facts.name},
                   {"version", ops::Version()},
                   {"tls", !config.tls_cert.empty() && !address.starts_with("unix:")},
                   {"anonymous", config.anonymous}});
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

void LogNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) ops::LogEvent(spdlog::level::warn, note);
}

/// What is allowed, and surely not meant; empty: nothing.
std::string Doubt(const ops::Config& config) {
  const bool knows_somebody = !config.tokens.empty() || !config.jwks.empty() ||
                              !config.tls_client_ca.empty() || !config.identity_header.empty();
  if (config.anonymous != "deny" || knows_somebody) return {};
  return "nobody may call: --anonymous is deny, and nobody has a name without --tokens, --jwks, "
         "--tls-client-ca or --identity-header";
}

/// --check-config: also what is in the files that callers are judged by, as who starts so may read them.
int Check(const ops::Config& config) {
  std::vector<std::string> of_this_system;
  if (const Status status = ops::Confine(ConfinementOf(config), &of_this_system); !status.ok()) {
    const bool wrong = status.code() == Code::kInvalidArgument;
    std::fprintf(stderr, "tilewired: %s: %s\n", wrong ? "error" : "warning: you cannot start it so",
                 std::string(status.message()).c_str());
    if (wrong) return kBadUsage;
  }
  const auto files = rpc::CredentialFiles::Open(ServerOptionsOf(config).credentials, rpc::WordsOfPolicies(),
                                                [](bool, std::string_view) {});
  if (!files) {
    std::fprintf(stderr, "tilewired: error: %s\n", std::string(files.error().message()).c_str());
    return kBadUsage;
  }
  for (const auto& [name, nearest] : UnknownVariables(environ))
    std::fprintf(stderr, "tilewired: warning: unknown environment variable %s; the nearest known one is %s\n",
                 name.c_str(), std::string(nearest).c_str());
  std::vector<std::string> doubts = (*files)->Doubts(std::chrono::system_clock::now());
  if (std::string doubt = Doubt(config); !doubt.empty()) doubts.push_back(std::move(doubt));
  for (const std::string& doubt : doubts) std::fprintf(stderr, "tilewired: warning: %s\n", doubt.c_str());
  std::puts("tilewired: the configuration is valid");
  return 0;
}

int Run(const ops::Config& config, std::shared_ptr<ops::AuditLog> audit) {
  // Now, in words: libraries end the process where they cannot have one.
  if (const Status status = CheckThreads(MostThreads(config)); !status.ok()) return CannotStart(status);
  auto device = OpenDevice(config.device);
  if (!device) return CannotStart(device.error());
  std::atomic<rpc::Server*> serving{nullptr};  // outlives the engine, whose failure handler asks for it
  auto engine = engine::Engine::Make(Wrapped(*std::move(device)), EngineOptionsOf(config));
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
  Announce(**server, (*engine)->facts(), config);

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
  if (parsed.check_only) return Check(*parsed.config);
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
  // Before there are threads: a signal to stop that finds one which does not block it ends the process there.
  std::string warning;
  const Status prepared = ops::PrepareProcess(&warning);
  std::optional<LibraryLines> library;
  try {
    ops::InitLogging(parsed.config->log_format, parsed.config->log_level);
    library.emplace();
  } catch (const std::exception& e) {  // there is no log to say it in
    std::fprintf(stderr, "tilewired: cannot start: no thread for the log: %s\n", e.what());
    return kCannotStart;
  }
  const rpc::LibraryLogRoute route(
      [&](auto severity, auto name, auto text) { library->Log(severity, name, text); });
  LogNotes(notes);
  for (const auto& [name, nearest] : UnknownVariables(environ))
    ops::LogEvent(spdlog::level::warn, "unknown environment variable",
                  {{"name", name}, {"nearest", nearest}});
  if (const std::string doubt = Doubt(*parsed.config); !doubt.empty())
    ops::LogEvent(spdlog::level::warn, doubt);
  if (!prepared.ok()) return CannotStart(prepared);
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

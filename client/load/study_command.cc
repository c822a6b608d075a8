// `tilewire-load study`, `ceilings` and `compare`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "client/cli/report.h"
#include "client/load/commands.h"
#include "client/load/tables.h"

namespace tilewire::load {
namespace {

/// The server of a study: one size, going one way, at a time, so that only that is in memory. Its data are
/// made once a size.
class StudyService {
 public:
  StudyService(const Globals& globals, const StudyOptions& options, std::vector<OperationSpec> operations)
      : globals_(globals), options_(options), operations_(std::move(operations)) {}
  ~StudyService() { Leave(); }

  Status Prepare(const StudyPlace& place, const std::stop_token& stop) {
    Leave();
    const OperationSpec spec = Going(operations_[place.size], place.via);
    if (!inputs_ || place.size != size_) {
      inputs_.reset();
      TILEWIRE_ASSIGN_OR_RETURN(Inputs made, Inputs::Make({&spec, 1}, options_.inputs, options_.seed));
      inputs_ = std::make_shared<const Inputs>(std::move(made));
      size_ = place.size;
    }
    service_ = std::make_unique<Service>(
        Service::Options{
            .address = globals_.server, .connect = globals_.connect, .timeout = std::chrono::seconds(120)},
        std::vector{spec}, inputs_);
    return service_->Prepare(0, stop);
  }

  Answer Make(const Request& request, const Tuning& tuning, const std::stop_token& stop) {
    return service_->Make(request, tuning, stop);
  }

 private:
  void Leave() {
    if (service_) WarnOfLeft(service_->Forget());
    service_.reset();
  }

  const Globals& globals_;
  const StudyOptions& options_;
  const std::vector<OperationSpec> operations_;
  std::shared_ptr<const Inputs> inputs_;
  std::unique_ptr<Service> service_;
  size_t size_ = 0;
};

/// Whether this process can share memory with the server.
Status TryRegion(client::Client* client, const std::stop_token& stop) {
  client::CallOptions options;
  options.timeout = std::chrono::seconds(10);
  options.stop = stop;
  auto region = client->Share(4096, {}, options);
  return region ? region->Unregister() : region.error();
}

/// What the study goes by: as told, or both with the wire in the way and without, where the server offers
/// that here.
Result<std::vector<Via>> ViasOf(const StudyOptions& options, const ServerFacts& server,
                                client::Client* client, const std::stop_token& stop) {
  const bool told = !options.vias.empty();
  if (told && std::ranges::count(options.vias, Via::kRegion) == 0) return options.vias;
  if (!told && server.info.region_prefix.empty()) return std::vector{Via::kWire};
  const Status regions = TryRegion(client, stop);
  if (regions.ok()) return told ? options.vias : std::vector{Via::kRegion, Via::kWire};
  if (told) return Fail(regions);
  std::fprintf(stderr, "warning: arrays go over the wire only: %s\n", regions.ToString().c_str());
  return std::vector{Via::kWire};
}

/// Whether all that was asked for was measured.
bool Complete(const StudyOptions& arguments, const StudyResult& study) {
  // What was not asked for by name may be too large for shared memory.
  return study.left_out.empty() ||
         (arguments.vias.empty() && std::ranges::none_of(study.left_out, [](const auto& left_out) {
            return left_out.place.via == Via::kWire;
          }));
}

Result<nlohmann::json> ReadResult(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!file || json.is_discarded())
    return Fail(Status(Code::kNotFound, "RESULT", path + ": cannot be read as a JSON file"));
  return json;
}

}  // namespace

int RunStudyCommand(const Globals& globals, const StudyOptions& arguments, const Interrupt& interrupt) {
  StudyOptions options = arguments;
  std::vector<OperationSpec> operations;
  for (const uint64_t size : options.sizes) {
    auto spec = StudyOperation(options, size);
    if (!spec) return cli::PrintError(spec.error(), kExitUsage);
    operations.push_back(*std::move(spec));
  }
  if (const int exit_code = CheckOutputs(globals); exit_code != kExitGood) return exit_code;
  int exit_code = kExitGood;
  auto probe = client::Client::Connect(globals.server, globals.connect);
  const auto server = Describe(globals, &probe, /*ceilings=*/true, interrupt, &exit_code);
  if (!server) return exit_code;
  auto vias = ViasOf(options, *server, &probe, interrupt.token());
  if (!vias)
    return cli::PrintError(vias.error(), interrupt.exit_code() != 0                  ? interrupt.exit_code()
                                         : vias.error().code() == Code::kUnavailable ? kExitUnreachable
                                                                                     : kExitBad);
  options.vias = *std::move(vias);
  const std::string started = IsoNow();
  const auto begin = std::chrono::steady_clock::now();
  StudyResult study;
  {
    StudyService service(globals, options, operations);
    StatusLine line;
    study = RunStudy(
        options,
        {.prepare = [&](const StudyPlace& place,
                        const std::stop_token& stop) { return service.Prepare(place, stop); },
         .call = [&](const StudyPlace&, uint32_t input, const Tuning& tuning,
                     const std::stop_token& stop) { return service.Make({.input = input}, tuning, stop); },
         .trace = [&](const StudyPlace&, const Tuning& tuning,
                      const std::stop_token& stop) { return service.Make({.trace = true}, tuning, stop); }},
        interrupt.token(), [&](size_t done, size_t all) {
          line.Show("point " + std::to_string(done + 1) + " of " + std::to_string(all));
        });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CallStats total;
  for (const StudyPoint& point : study.points) total.Merge(point.stats);
  const bool good =
      total.good > 0 && total.wrong == 0 && total.failed == 0 && !study.lost && Complete(arguments, study);
  exit_code = interrupt.exit_code() != 0 ? interrupt.exit_code() : good ? kExitGood : kExitBad;
  return Publish(globals, StudyJson(options, operations, *server, study, started, seconds), exit_code);
}

int RunCeilings(const Globals& globals, const Interrupt& interrupt) {
  if (const int exit_code = CheckOutputs(globals); exit_code != kExitGood) return exit_code;
  int exit_code = kExitGood;
  auto probe = client::Client::Connect(globals.server, globals.connect);
  const auto server = Describe(globals, &probe, /*ceilings=*/true, interrupt, &exit_code);
  if (!server) return exit_code;
  if (!server->ceilings) return kExitBad;  // the warning has said why
  nlohmann::ordered_json ceilings = nlohmann::ordered_json::object();
  for (const auto& [name, rate] : server->ceilings->bytes_per_second) ceilings[name] = rate;
  if (cli::Print(CeilingsText(ceilings)) != cli::kExitOk) return kExitUsage;
  if (globals.json.empty()) return kExitGood;
  return WriteJson(globals.json, {{"server", ServerJson(*server)}, {"ceilings", ceilings}});
}

int RunCompare(const CompareArguments& arguments) {
  const auto a = ReadResult(arguments.a), b = ReadResult(arguments.b);
  for (const auto* result : {&a, &b})
    if (!*result) return cli::PrintError(result->error(), kExitUsage);
  const auto comparison = Compare(
      *a, *b, {arguments.threshold_percent / 100, arguments.tail_threshold_percent / 100, arguments.anyway});
  if (!comparison) return cli::PrintError(comparison.error(), kExitUsage);
  if (cli::Print(ComparisonText(*comparison)) != cli::kExitOk) return kExitUsage;
  return comparison->regression ? kExitRegression : kExitGood;
}

}  // namespace tilewire::load

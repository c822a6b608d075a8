// `tilewire-load study`, `ceilings` and `compare`.
#include <chrono>
#include <cstdio>
#include <fstream>

#include "client/cli/report.h"
#include "client/load/commands.h"
#include "client/load/tables.h"

namespace tilewire::load {
namespace {

/// One operation and its inputs a size: a service each, made when its first call comes, so that only one size
/// is in memory at a time.
class StudyService {
 public:
  StudyService(const Globals& globals, const StudyOptions& options, std::vector<OperationSpec> operations)
      : globals_(globals), options_(options), operations_(std::move(operations)) {}

  Answer Make(size_t size, uint32_t input, const Tuning& tuning, const std::stop_token& stop) {
    if (!service_ || size != size_) {
      service_.reset();
      const OperationSpec& spec = operations_[size];
      auto inputs = Inputs::Make({&spec, 1}, options_.inputs, options_.seed);
      if (!inputs) return {.status = inputs.error()};
      service_ = std::make_unique<Service>(Service::Options{globals_.server, 1, std::chrono::seconds(120)},
                                           std::vector{spec}, *std::move(inputs));
      size_ = size;
    }
    return service_->Make({.operation = 0, .input = input}, tuning, stop);
  }

 private:
  const Globals& globals_;
  const StudyOptions& options_;
  const std::vector<OperationSpec> operations_;
  std::unique_ptr<Service> service_;
  size_t size_ = 0;
};

Result<nlohmann::json> ReadResult(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!file || json.is_discarded())
    return Fail(Status(Code::kNotFound, "RESULT", path + ": cannot be read as a JSON file"));
  return json;
}

}  // namespace

int RunStudyCommand(const Globals& globals, const StudyOptions& options, const Interrupt& interrupt) {
  std::vector<OperationSpec> operations;
  for (const uint64_t size : options.sizes) {
    auto spec = StudyOperation(options, size);
    if (!spec) return cli::PrintError(spec.error(), kExitUsage);
    operations.push_back(*std::move(spec));
  }
  if (const int exit_code = CheckOutputs(globals); exit_code != kExitGood) return exit_code;
  int exit_code = kExitGood;
  auto probe = client::Client::Connect(globals.server);
  const auto server = Describe(globals, &probe, /*ceilings=*/true, interrupt, &exit_code);
  if (!server) return exit_code;
  StudyService service(globals, options, operations);
  const std::string started = IsoNow();
  const auto begin = std::chrono::steady_clock::now();
  StudyResult study;
  {
    StatusLine line;
    study = RunStudy(
        options,
        [&](size_t size, uint32_t input, const Tuning& tuning, const std::stop_token& stop) {
          return service.Make(size, input, tuning, stop);
        },
        interrupt.token(),
        [&](size_t done, size_t all) {
          line.Show("point " + std::to_string(done + 1) + " of " + std::to_string(all));
        });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CallStats total;
  for (const StudyPoint& point : study.points) total.Merge(point.stats);
  exit_code = interrupt.exit_code() != 0                                ? interrupt.exit_code()
              : total.good > 0 && total.wrong == 0 && total.failed == 0 ? kExitGood
                                                                        : kExitBad;
  return Publish(globals, StudyJson(options, operations, *server, study, started, seconds), exit_code);
}

int RunCeilings(const Globals& globals, const Interrupt& interrupt) {
  if (const int exit_code = CheckOutputs(globals); exit_code != kExitGood) return exit_code;
  int exit_code = kExitGood;
  auto probe = client::Client::Connect(globals.server);
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
  const auto comparison =
      Compare(*a, *b, {arguments.threshold_percent / 100, arguments.tail_threshold_percent / 100});
  if (!comparison) return cli::PrintError(comparison.error(), kExitUsage);
  if (cli::Print(ComparisonText(*comparison)) != cli::kExitOk) return kExitUsage;
  return comparison->regression ? kExitRegression : kExitGood;
}

}  // namespace tilewire::load

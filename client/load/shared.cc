// What the commands share: the server's words, output files, the status line.
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "client/cli/report.h"
#include "client/cpp/file.h"
#include "client/cpp/tls_explain.h"
#include "client/load/commands.h"
#include "client/load/html.h"
#include "client/load/tables.h"

namespace tilewire::load {
namespace {

Status WriteFile(const std::string& path, const std::string& text) {
  TILEWIRE_ASSIGN_OR_RETURN(client::OutputFile file, client::OutputFile::Create(path, text.size()));
  TILEWIRE_RETURN_IF_ERROR(file.Write(0, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return file.Commit();
}

bool Unreachable(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
}

}  // namespace

std::optional<ServerFacts> Describe(const Globals& globals, client::Client* client, bool ceilings,
                                    const Interrupt& interrupt, int* exit_code) {
  client::CallOptions options;
  options.timeout = std::chrono::seconds(10);
  options.stop = interrupt.token();
  auto info = client->Describe(options);
  if (!info) {
    *exit_code = interrupt.exit_code() != 0  ? interrupt.exit_code()
                 : Unreachable(info.error()) ? kExitUnreachable
                                             : kExitBad;
    const std::string why =
        Unreachable(info.error()) ? client::ExplainTls(globals.server, globals.connect) : std::string();
    std::fprintf(stderr, "error: %s: %s\n", globals.server.c_str(),
                 why.empty() ? info.error().ToString().c_str() : why.c_str());
    return std::nullopt;
  }
  ServerFacts facts{globals.server, *std::move(info), std::nullopt};
  if (!ceilings) return facts;
  options.timeout =
      std::chrono::seconds(60);  // 100 ms of work are many seconds on a machine busy with others
  auto measured = client->MeasureCeilings(options);
  if (measured) {
    facts.ceilings = *std::move(measured);
  } else {
    std::fprintf(stderr, "warning: the machine's limits were not measured: %s\n",
                 measured.error().ToString().c_str());
  }
  return facts;
}

void WarnOfLeft(size_t left) {
  if (left > 0)
    std::fprintf(
        stderr,
        "warning: %zu arrays or regions could not be deleted; the server forgets them when they expire\n",
        left);
}

int CheckOutputs(const Globals& globals) {
  for (const std::string& path : {globals.json, globals.html}) {
    if (path.empty()) continue;
    const auto file = client::OutputFile::Create(path, 0);
    if (!file) return cli::PrintError(file.error(), kExitUsage);
  }
  return kExitGood;
}

int WriteJson(const std::string& path, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const Status status = WriteFile(path, text);
  return status.ok() ? kExitGood : cli::PrintError(status, kExitUsage);
}

int Publish(const Globals& globals, const nlohmann::ordered_json& result, int exit_code) {
  if (cli::Print(ResultText(result)) != cli::kExitOk) exit_code = kExitUsage;
  if (!globals.json.empty() && WriteJson(globals.json, result) != kExitGood) return kExitUsage;
  if (globals.html.empty()) return exit_code;
  const Status status = WriteFile(globals.html, HtmlPage(nlohmann::json(result)));
  return status.ok() ? exit_code : cli::PrintError(status, kExitUsage);
}

StatusLine::StatusLine() : enabled_(::isatty(STDERR_FILENO) == 1) {}

StatusLine::~StatusLine() {
  if (shown_) std::fprintf(stderr, "\r\x1b[K");
}

void StatusLine::Show(const std::string& text) {
  if (!enabled_) return;
  std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
  shown_ = true;
}

}  // namespace tilewire::load

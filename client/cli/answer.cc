#include "client/cli/answer.h"

#include <unistd.h>

#include "client/cpp/npy.h"

namespace tilewire::cli {
namespace {

using nlohmann::ordered_json;

/// Paths may be any bytes.
std::string Line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<NpyOutput> NpyOutput::Create(const std::string& path, const ArraySpec& spec) {
  const std::string header = client::FormatNpyHeader(spec);
  TILEWIRE_ASSIGN_OR_RETURN(
      client::OutputFile file,
      client::OutputFile::Create(path, header.size() + static_cast<uint64_t>(spec.bytes())));
  TILEWIRE_RETURN_IF_ERROR(file.Write(0, {reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
  return NpyOutput(std::move(file), header.size());
}

void MaybePrintTiming(const Globals& globals, const client::Reply& reply) {
  if (globals.timing || ::isatty(STDERR_FILENO) == 1) PrintTiming(reply);
}

void AddReply(const client::Reply& reply, ordered_json* json) {
  (*json)["shape"] = JsonShape(reply.spec.shape);
  if (reply.specs.size() == 1) (*json)["dtype"] = std::string(Name(reply.spec.dtype));
  if (!reply.numeric_version.empty()) (*json)["numeric_version"] = reply.numeric_version;
  (*json)["timing"] = JsonTiming(reply);
}

int PrintFile(const Globals& globals, const std::string& path, const client::Reply& reply) {
  if (!globals.json) return kExitOk;
  ordered_json json;
  json["out"] = path;
  AddReply(reply, &json);
  return Print(Line(json));
}

int PrintStored(const Globals& globals, client::StoredReply* stored) {
  std::string text = stored->array.id() + "\n";
  if (globals.json) {
    ordered_json json;
    json["array"] = stored->array.id();
    AddReply(stored->reply, &json);
    text = Line(json);
  }
  const int exit_code = Print(text);
  if (exit_code == kExitOk) stored->array.Release();
  return exit_code;
}

int WriteTrace(TraceFiles* files, const std::string& title, const client::Reply& reply, int exit_code) {
  const Status status = files->Write(title, reply);
  return status.ok() ? exit_code : PrintError(status);
}

}  // namespace tilewire::cli

// `tilewire put`, `get`, `ls` and `rm`.
#include <array>
#include <sstream>

#include "client/cli/answer.h"
#include "client/cli/operands.h"
#include "client/cli/tracks.h"
#include "kernels/figures/text.h"

namespace tilewire::cli {
namespace {

using client::ArraySource;
using nlohmann::ordered_json;

ordered_json JsonArray(const client::ArrayInfo& info) {
  return {{"array", info.id},
          {"shape", JsonShape(info.spec.shape)},
          {"dtype", std::string(Name(info.spec.dtype))},
          {"device_bytes", info.device_bytes},
          {"device", info.device},
          {"evictable", info.evictable},
          {"age_seconds", info.age_seconds},
          {"expires_seconds", info.expires_seconds},
          {"idle_seconds", info.idle_seconds},
          {"users", info.users}};
}

/// "45 s", "3.5 h".
std::string FormatSeconds(double seconds) {
  if (seconds < 100) return FormatFixed(seconds, seconds < 10 ? 1 : 0) + " s";
  if (seconds < 6000) return FormatFixed(seconds / 60, 0) + " min";
  return FormatFixed(seconds / 3600, 1) + " h";
}

std::string TextList(const client::ArrayList& list) {
  std::vector<std::vector<std::string>> rows{
      {"ID", "DTYPE", "SHAPE", "DEVICE", "MEMORY", "AGE", "EXPIRES", "IDLE", "USERS", "KEPT"}};
  for (const auto& info : list.arrays)
    rows.push_back({info.id, std::string(Name(info.spec.dtype)), info.spec.shape.ToString(), info.device,
                    FormatBytes(info.device_bytes), FormatSeconds(info.age_seconds),
                    FormatSeconds(info.expires_seconds), FormatSeconds(info.idle_seconds),
                    std::to_string(info.users), info.evictable ? "evictable" : "to the end"});
  return Columns(rows, rows.front().size()) + std::to_string(list.arrays.size()) +
         (list.arrays.size() == 1 ? " array" : " arrays") + ", " + FormatBytes(list.stored_bytes) + " of " +
         FormatBytes(list.quota_bytes) + "\n";
}

}  // namespace

int RunPut(const Globals& globals, const PutArguments& arguments) {
  const auto source = ArraySource::OpenNpy(arguments.in);
  if (!source) return PrintError(source.error(), kExitUsage);
  auto files = TraceFiles::Open(globals);
  if (!files) return PrintError(files.error(), kExitUsage);
  auto client = client::Client::Connect(globals.server, globals.connect);
  auto stored = [&] {
    ProgressLine progress;
    client::CallOptions options = globals.call_options();
    options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
    return client.Put(*source, arguments.store, options);
  }();
  if (!stored) return PrintCallError(globals, stored.error(), kExitFailed);
  MaybePrintTiming(globals, stored->reply);
  return WriteTrace(&*files, "put " + Describe(source->spec()), stored->reply,
                    PrintStored(globals, &*stored));
}

int RunGet(const Globals& globals, const GetArguments& arguments) {
  const auto id = ParseArrayId(arguments.id);
  if (!id) return PrintError(id.error(), kExitUsage);
  auto files = TraceFiles::Open(globals, arguments.out);
  if (!files) return PrintError(files.error(), kExitUsage);
  auto client = client::Client::Connect(globals.server, globals.connect);
  client::CallOptions options = globals.call_options();
  std::vector<ArraySource> array{ArraySource::Resident(*id)};
  if (Status status = LearnSpecs(&client, &array, &options); !status.ok())
    return PrintCallError(globals, status, kExitFailed);
  auto output = NpyOutput::Create(arguments.out, array[0].spec());
  if (!output) return PrintError(output.error(), kExitUsage);
  const auto reply = [&] {
    ProgressLine progress;
    options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
    options.concurrent_sink = true;  // each byte has its own place in the file
    const auto sink = [&](uint64_t offset, std::span<const uint8_t> bytes) {
      return output->Write(offset, bytes);
    };
    return client.Get(array[0], sink, options);
  }();
  if (!reply) return PrintCallError(globals, reply.error(), kExitFailed);
  if (const Status status = output->Commit(); !status.ok()) return PrintError(status);
  MaybePrintTiming(globals, *reply);
  return WriteTrace(&*files, "get " + Describe(reply->spec), *reply,
                    PrintFile(globals, arguments.out, *reply));
}

int RunList(const Globals& globals) {
  const auto list = client::Client::Connect(globals.server, globals.connect).List(globals.call_options());
  if (!list) return PrintCallError(globals, list.error(), kExitFailed);
  if (!globals.json) return Print(TextList(*list));
  ordered_json json;
  json["arrays"] = ordered_json::array();
  for (const auto& info : list->arrays) json["arrays"].push_back(JsonArray(info));
  json["stored_bytes"] = list->stored_bytes;
  json["quota_bytes"] = list->quota_bytes;
  return Print(json.dump() + "\n");
}

int RunRemove(const Globals& globals, const std::vector<std::string>& arrays) {
  std::vector<std::string> ids;
  for (const std::string& text : arrays) {
    const auto id = ParseArrayId(text);
    if (!id) return PrintError(id.error(), kExitUsage);
    ids.push_back(*id);
  }
  auto client = client::Client::Connect(globals.server, globals.connect);
  ordered_json deleted = ordered_json::array();
  int exit_code = kExitOk;
  for (const std::string& id : ids) {
    const Status status = client.Delete(id, globals.call_options());
    if (status.ok()) {
      deleted.push_back(id);
    } else {
      exit_code = PrintCallError(globals, status, kExitFailed);
    }
    if (globals.stop.stop_requested()) break;
  }
  if (!globals.json) return exit_code;
  const int printed = Print(ordered_json{{"deleted", std::move(deleted)}}.dump() + "\n");
  return exit_code == kExitOk ? printed : exit_code;
}

}  // namespace tilewire::cli

// `tilewire info` and `tilewire ping`.
#include <sstream>

#include "client/cli/commands.h"
#include "client/cli/report.h"
#include "kernels/figures/text.h"

namespace tilewire::cli {
namespace {

using client::ServerInfo;
using nlohmann::ordered_json;

ordered_json JsonInfo(const Globals& globals, const ServerInfo& info) {
  ordered_json json{{"server", globals.server}, {"instance", info.instance}, {"version", info.version}};
  json["numeric_versions"] = info.numeric_versions;
  json["devices"] = ordered_json::array();
  for (const auto& device : info.devices) {
    json["devices"].push_back({{"id", device.id},
                               {"name", device.name},
                               {"memory_bytes", device.memory_bytes},
                               {"processors", device.processors},
                               {"compute_capability", device.compute_capability},
                               {"driver_version", device.driver_version},
                               {"runtime_version", device.runtime_version}});
    auto& told = json["devices"].back();
    if (device.copy_in_bytes_per_second) told["copy_in_bytes_per_second"] = *device.copy_in_bytes_per_second;
    if (device.copy_out_bytes_per_second)
      told["copy_out_bytes_per_second"] = *device.copy_out_bytes_per_second;
  }
  json["limits"] = {{"block_bytes", info.block_bytes},
                    {"max_message_bytes", info.max_message_bytes},
                    {"max_unary_bytes", info.max_unary_bytes},
                    {"inline_result_bytes", info.inline_result_bytes},
                    {"lanes", info.lanes},
                    {"max_in_flight", info.max_in_flight},
                    {"queue_length", info.queue_length},
                    {"queue_seconds", info.queue_seconds},
                    {"idle_seconds", info.idle_seconds},
                    {"max_rank", info.max_rank},
                    {"store_seconds", info.store_seconds},
                    {"longest_store_seconds", info.longest_store_seconds},
                    {"store_bytes", info.store_bytes},
                    {"store_bytes_per_identity", info.store_bytes_per_identity},
                    {"max_arrays", info.max_arrays},
                    {"region_prefix", info.region_prefix},
                    {"device_regions", info.device_regions},
                    {"region_bytes", info.region_bytes},
                    {"region_bytes_per_identity", info.region_bytes_per_identity}};
  json["budgets"] = {
      {"device_bytes", info.device_bytes},     {"device_bytes_in_use", info.device_bytes_in_use},
      {"pinned_bytes", info.pinned_bytes},     {"pinned_bytes_in_use", info.pinned_bytes_in_use},
      {"jobs_in_flight", info.jobs_in_flight}, {"jobs_queued", info.jobs_queued},
      {"arrays_stored", info.arrays_stored},   {"array_bytes", info.array_bytes}};
  return json;
}

std::string TextInfo(const Globals& globals, const ServerInfo& info) {
  std::ostringstream out;
  const auto row = [&out](const std::string& name, const auto& value) {
    out << name << std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') << value << "\n";
  };
  row("server", globals.server + ", version " + info.version + ", instance " + info.instance);
  for (const auto& device : info.devices) {
    std::string text = device.id + " \"" + device.name + "\", " + FormatBytes(device.memory_bytes) + ", " +
                       std::to_string(device.processors) + " processors";
    if (!device.compute_capability.empty()) text += ", compute capability " + device.compute_capability;
    if (!device.driver_version.empty())
      text += ", CUDA driver " + device.driver_version + ", runtime " + device.runtime_version;
    row("device", text);
    if (device.copy_in_bytes_per_second && device.copy_out_bytes_per_second)
      row("copies", FormatFixed(*device.copy_in_bytes_per_second / 1e9, 1) + " GB/s in, " +
                        FormatFixed(*device.copy_out_bytes_per_second / 1e9, 1) +
                        " GB/s out, a block at a time");
  }
  std::string versions;
  for (const auto& version : info.numeric_versions) versions += (versions.empty() ? "" : " ") + version;
  row("numeric versions", versions);
  row("device memory",
      FormatBytes(info.device_bytes_in_use) + " of " + FormatBytes(info.device_bytes) + " in use");
  row("pinned memory",
      FormatBytes(info.pinned_bytes_in_use) + " of " + FormatBytes(info.pinned_bytes) + " in use");
  row("jobs", std::to_string(info.jobs_in_flight) + " in flight of at most " +
                  std::to_string(info.max_in_flight) + ", " + std::to_string(info.jobs_queued) +
                  " queued of at most " + std::to_string(info.queue_length));
  row("regions", info.region_prefix.empty()
                     ? "off"
                     : std::to_string(info.regions_registered) + ", " +
                           FormatBytes(info.region_bytes_registered) + " of " +
                           FormatBytes(info.region_bytes) + ", names " + info.region_prefix + "...");
  row("resident arrays", std::to_string(info.arrays_stored) + " of at most " +
                             std::to_string(info.max_arrays) + ", " + FormatBytes(info.array_bytes) + " of " +
                             FormatBytes(info.store_bytes) + ", " +
                             FormatBytes(info.store_bytes_per_identity) + " a caller");
  row("kept", FormatDouble(info.store_seconds) + " s unless asked otherwise, at most " +
                  FormatDouble(info.longest_store_seconds) + " s");
  row("block", FormatBytes(info.block_bytes));
  row("largest message",
      FormatBytes(info.max_message_bytes) + ", unary " + FormatBytes(info.max_unary_bytes));
  row("lanes", info.lanes);
  row("patience", FormatDouble(info.queue_seconds) + " s in the queue, " + FormatDouble(info.idle_seconds) +
                      " s without progress");
  return out.str();
}

}  // namespace

int RunInfo(const Globals& globals) {
  const auto info = client::Client::Connect(globals.server, globals.connect).Describe(globals.call_options());
  if (!info) return PrintCallError(globals, info.error(), kExitFailed);
  return Print(globals.json ? JsonInfo(globals, *info).dump() + "\n" : TextInfo(globals, *info));
}

int RunPing(const Globals& globals, int count) {
  auto client = client::Client::Connect(globals.server, globals.connect);
  ordered_json times = ordered_json::array();
  for (int i = 0; i < count; ++i) {
    const auto time = client.Ping(globals.call_options());
    if (!time) return PrintCallError(globals, time.error(), kExitFailed);
    const double us = std::chrono::duration<double, std::micro>(*time).count();
    times.push_back(us);
    if (globals.json) continue;
    const std::string line = FormatFixed(us / 1000, 3) + " ms" + (i == 0 ? "  (with connecting)\n" : "\n");
    if (const int code = Print(line); code != kExitOk) return code;
  }
  if (!globals.json) return kExitOk;
  return Print(ordered_json{{"server", globals.server}, {"round_trip_us", std::move(times)}}.dump() + "\n");
}

}  // namespace tilewire::cli

// `tilewire info --kernels`.
#include <algorithm>
#include <utility>

#include "client/cli/commands.h"
#include "client/cli/report.h"
#include "kernels/figures/text.h"

namespace tilewire::cli {
namespace {

using client::ServerKernels;
using nlohmann::ordered_json;
using Row = std::vector<std::string>;

/// "1024 x 2", unit extents at the end left out.
template <typename Extent>
std::string ExtentText(const Extent (&extent)[3]) {
  std::string text = std::to_string(extent[0]);
  for (int i = 1; i < 3; ++i)
    if (extent[i] != 1 || extent[2] != 1) text += " x " + std::to_string(extent[i]);
  return text;
}

Row Titles() {
  return {"group",    "operation", "part",      "grid", "block",     "registers", "local B",
          "shared B", "const B",   "max block", "code", "blocks/SM", "occupancy", "kernel"};
}

Row RowOf(const ServerKernels::Launch& launch) {
  const KernelInfo& kernel = launch.kernel;
  std::string shared = std::to_string(kernel.static_shared_bytes);
  if (kernel.dynamic_shared_bytes > 0) shared += " + " + std::to_string(kernel.dynamic_shared_bytes);
  return {launch.group,
          launch.operation,
          launch.part,
          ExtentText(kernel.grid),
          ExtentText(kernel.block),
          std::to_string(kernel.registers),
          std::to_string(kernel.local_bytes),
          shared,
          std::to_string(kernel.const_bytes),
          std::to_string(kernel.max_threads_per_block),
          "sm_" + std::to_string(kernel.binary_version) + "/ptx_" + std::to_string(kernel.ptx_version),
          std::to_string(kernel.blocks_per_multiprocessor),
          FormatFixed(100 * kernel.occupancy, 0) + "%",
          kernel.name};
}

std::string TextKernels(const ServerKernels& kernels) {
  if (kernels.launches.empty())
    return kernels.device + (kernels.device == "cpu" ? " has no GPU kernels: it runs host code\n"
                                                     : " launches no kernel for that: the driver copies\n");
  std::vector<Row> rows{Titles()};
  for (const auto& launch : kernels.launches) rows.push_back(RowOf(launch));
  return kernels.device + "\n" + Columns(rows, rows.front().size());
}

ordered_json JsonKernels(const Globals& globals, const ServerKernels& kernels) {
  ordered_json json{{"server", globals.server}, {"device", kernels.device}};
  json["kernels"] = ordered_json::array();
  for (const auto& [group, operation, part, kernel] : kernels.launches)
    json["kernels"].push_back({{"group", group},
                               {"operation", operation},
                               {"part", part},
                               {"name", kernel.name},
                               {"registers", kernel.registers},
                               {"local_bytes", kernel.local_bytes},
                               {"static_shared_bytes", kernel.static_shared_bytes},
                               {"dynamic_shared_bytes", kernel.dynamic_shared_bytes},
                               {"const_bytes", kernel.const_bytes},
                               {"max_threads_per_block", kernel.max_threads_per_block},
                               {"binary_version", kernel.binary_version},
                               {"ptx_version", kernel.ptx_version},
                               {"grid", kernel.grid},
                               {"block", kernel.block},
                               {"blocks_per_multiprocessor", kernel.blocks_per_multiprocessor},
                               {"occupancy", kernel.occupancy}});
  return json;
}

Result<ServerKernels> Ask(const Globals& globals, const KernelsArguments& arguments, int* exit_code) {
  *exit_code = kExitFailed;
  auto client = client::Client::Connect(globals.server, globals.connect);
  if (arguments.operation.empty()) return client.DescribeKernels(globals.call_options());
  const auto spec = MakeSpec(arguments.dtype, arguments.shape);
  if (!spec) {
    *exit_code = kExitUsage;
    return Fail(spec.error());
  }
  const client::OperationInfo& info = *client::FindOperation(arguments.operation);
  client::Operation operation(*info.descriptor);
  if (client::FindFlag(info, "axes") != nullptr) operation.attributes.Set("axes", arguments.axes);
  const std::vector<ArraySpec> operands(info.operands.size(), *spec);
  return client.DescribeKernels(operation, operands, globals.call_options());
}

}  // namespace

int RunKernels(const Globals& globals, const KernelsArguments& arguments) {
  int exit_code = kExitOk;
  const auto kernels = Ask(globals, arguments, &exit_code);
  if (!kernels) return PrintCallError(globals, kernels.error(), exit_code);
  return Print(globals.json ? JsonKernels(globals, *kernels).dump() + "\n" : TextKernels(*kernels));
}

}  // namespace tilewire::cli

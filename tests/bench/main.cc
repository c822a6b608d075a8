// tilewire_bench: the service beside bare gRPC, in one run. Starts its own servers on loopback.
//   wire      upload + RMSE over one connection or several, beside raw gRPC sinks that copy every byte once
//   small     4 KiB Kernels.Rmse beside a raw gRPC echo of as many bytes
//   idle      the same after idle pauses
//   mixed     one bulk upload with 4 KiB calls beside it
//   callers   4 KiB calls from many callers at once, beside as many echoes
//   access    operands that are sent, resident, or in shared memory
//   distance  uploads and downloads over round trips that a relay makes
//   overload  many and stalled connections: memory stays bounded, the others' calls go on and are right
//   fair      callers with one job each beside one who fills the queue
//   excess    more calls than the server can do, whether or not it answers: what of them it still does
//   doors     4 KiB calls with everything but TLS on that keeps others out, and without
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "server/ops/process.h"
#include "tests/bench/bench.h"

namespace {

/// SIGTERM and Ctrl-C: without their servers all commands come to an end soon, and tell what they can; a
/// second one does not wait for that.
void HeedSignals(const std::stop_token& stop) {
  for (int signals = 0; !stop.stop_requested();) {
    if (!tilewire::ops::WaitForSignalFor(std::chrono::milliseconds(50))) continue;
    tilewire::bench::Child::EndAll();
    if (++signals > 1) _exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tilewire::bench;  // NOLINT(google-build-using-namespace)
  Common common;
  Run run;
  CLI::App app("Tilewire beside bare gRPC, in one run");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--device", common.device, "device of the server")->capture_default_str();
  app.add_option("--block-bytes", common.block_bytes, "block size of the server")->capture_default_str();
  app.add_option("--host-bytes", common.host_bytes, "what the server computes beside a GPU; 0: nothing")
      ->capture_default_str();
  app.add_flag("--json", common.json,
               "mixed, callers, access, distance, overload, fair, excess, doors: print one JSON object "
               "instead of a table");
  app.add_flag(
      "--untuned", common.untuned,
      "leave the allocator of this process, the clients', as glibc has it: what programs pay that do "
      "not tune it");
  for (const auto add : {&AddWire, &AddSmall, &AddIdle, &AddMixed, &AddCallers, &AddAccess, &AddDistance,
                         &AddOverload, &AddFair, &AddExcess, &AddDoors})
    add(&app, common, &run);
  CLI11_PARSE(app, argc, argv);
  if (!tilewire::ops::PrepareProcess(nullptr, !common.untuned).ok()) return 3;
  const std::jthread heeds_signals(HeedSignals);
  try {
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

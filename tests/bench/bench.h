// What the commands of tilewire_bench share. Each starts its own servers on loopback and measures Tilewire
// and its peer in one run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "kernels/figures/statistics.h"
#include "tests/bench/child.h"

namespace tilewire::bench {

/// Flags of all commands.
struct Common {
  std::string device = "auto", block_bytes = "4MiB", host_bytes = "8KiB";
  bool json = false, untuned = false;
};

/// Each adds its command to the program and sets `*run` where that command was chosen. What runs throws
/// std::runtime_error, and returns the exit code.
using Run = std::function<int()>;
void AddWire(CLI::App* app, const Common& common, Run* run);
void AddSmall(CLI::App* app, const Common& common, Run* run);
void AddIdle(CLI::App* app, const Common& common, Run* run);
void AddMixed(CLI::App* app, const Common& common, Run* run);
void AddCallers(CLI::App* app, const Common& common, Run* run);
void AddAccess(CLI::App* app, const Common& common, Run* run);
void AddDistance(CLI::App* app, const Common& common, Run* run);
void AddOverload(CLI::App* app, const Common& common, Run* run);
void AddFair(CLI::App* app, const Common& common, Run* run);
void AddExcess(CLI::App* app, const Common& common, Run* run);
void AddDoors(CLI::App* app, const Common& common, Run* run);

/// Random finite f32: zeros would be a special case for nobody's hardware, but they hide mistakes. Mapped,
/// and kept until the program ends.
float* RandomFloats(size_t count, uint64_t seed);

/// `count` f32 at `data` as a 1-d array.
client::ArraySource Source(const float* data, size_t count);

/// RMSE of two runs of f32, by the host kernels: what every answer has to equal bit for bit.
double HostRmse(const float* a, const float* b, size_t count);

/// tilewired with these flags and `extra` ones, on loopback or at "unix:PATH".
Child StartServer(const Common& common, const std::vector<std::string>& extra = {},
                  const std::string& listen = "localhost:0");

/// Microseconds of `count` unary RMSE calls of 2 × 2 KiB, and what the server says of each where `timings` is
/// given.
std::vector<double> Calls(client::Client* client, const float* data, int count,
                          std::vector<client::Timing>* timings);

}  // namespace tilewire::bench

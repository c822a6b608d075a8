// Operations whose arrays are brought in different ways: sent, resident, in memory shared with the server.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/base/limits.h"
#include "tests/bench/bench.h"
#include "tests/bench/raw_client.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

struct Flags {
  size_t mebibytes = 1024;
  int rounds = 5, connections = 0, calls = 200;
};

/// A way to bring operands, and what its calls took.
struct Way {
  std::string name;
  std::function<Result<client::RmseReply>(bool trace)> call;
  int calls = 1;  ///< a round
  std::vector<double> wall_us{}, kernel_us{}, server_us{}, beyond_kernel_us{};
  std::vector<double> before_us{}, after_us{};  ///< the server's time before its kernels, and after
};

template <typename T>
T Take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

void Round(Way* way, double right, bool measured) {
  for (int i = 0; i < way->calls; ++i) {
    const auto reply = Take(way->call(false));
    if (reply.values[0] != right) throw std::runtime_error(way->name + ": the answer is wrong");
    if (!measured) continue;
    const double kernel = reply.reply.timing.kernel_us.value_or(0);
    way->wall_us.push_back(reply.reply.client_wall_us);
    way->kernel_us.push_back(kernel);
    way->server_us.push_back(reply.reply.timing.wall_us);
    way->beyond_kernel_us.push_back(reply.reply.client_wall_us - kernel);
  }
}

/// Where the server's time went around its kernels: calls of their own, since telling it takes time too.
void Trace(Way* way, int calls) {
  for (int i = 0; i < calls; ++i) {
    const auto reply = Take(way->call(true));
    const client::Timing& timing = reply.reply.timing;
    double begin = timing.wall_us, end = 0;
    for (const client::ServerSpan& span : timing.spans)
      if (span.stage == client::Stage::kKernel) {
        begin = std::min(begin, span.begin_us);
        end = std::max(end, span.end_us);
      }
    way->before_us.push_back(begin);
    way->after_us.push_back(timing.wall_us - end);
  }
}

/// What a bare peer does with as many bytes as a call with two ids has, at once and, less that time, after as
/// long as the kernel takes, since threads that slept that long wake later: the client's, and apart also the
/// peer's that takes the next call.
struct Echoes {
  std::vector<double> at_once_us{}, held_us{}, held_apart_us{};
};

void Round(RawClient* echo, int calls, double kernel_us, Echoes* echoes) {
  constexpr size_t kBytes = 256;
  for (const double us : echo->Echo(kBytes, calls)) echoes->at_once_us.push_back(us);
  for (const double us : echo->Echo(kBytes, calls, kernel_us)) echoes->held_us.push_back(us - kernel_us);
  for (const double us : echo->Echo(kBytes, calls, kernel_us, /*apart=*/true))
    echoes->held_apart_us.push_back(us - kernel_us);
}

/// `bytes` of one operand.
Report::Values Values(const Way& way, double bytes) {
  const double wall = Median(way.wall_us), kernel = Median(way.kernel_us);
  Report::Values values = {{"p50_us", wall},
                           {"p99_us", Quantile(way.wall_us, .99)},
                           {"server_us", Median(way.server_us)},
                           {"kernel_us", kernel},
                           {"p50_beyond_kernel_us", Median(way.beyond_kernel_us)},
                           {"candidates_GB/s", bytes / wall / 1e3},
                           {"both_GB/s", 2 * bytes / wall / 1e3},
                           {"kernel_GB/s", kernel > 0 ? 2 * bytes / kernel / 1e3 : 0}};
  if (way.before_us.empty()) return values;
  values.emplace_back("before_us", Median(way.before_us));
  values.emplace_back("after_us", Median(way.after_us));
  return values;
}

/// Two operands of `bytes` at `data`, in every way.
void Measure(client::Client* client, RawClient* echo, const float* data, size_t bytes, const Flags& flags,
             Report* report) {
  const size_t count = bytes / sizeof(float);
  const auto candidate = Source(data, count), reference = Source(data + count, count);
  const double right = HostRmse(data, data + count, count);
  client::CallOptions options;
  options.connections = static_cast<uint32_t>(flags.connections);
  const auto stored_candidate = Take(client->Put(candidate, {}, options));
  const auto stored_reference = Take(client->Put(reference, {}, options));
  const auto rmse = [&](const client::ArraySource& a, const client::ArraySource& b) {
    return [=](bool trace) {
      client::CallOptions chosen = options;
      chosen.trace = trace;
      return client->Rmse(a, b, {}, chosen);
    };
  };
  const auto region = Take(client->Share(2 * bytes));
  std::memcpy(region.data(), data, 2 * bytes);
  const int sending = bytes > kMiB ? 1 : flags.calls;
  std::vector<Way> ways;
  ways.push_back({"both sent", rmse(candidate, reference), sending});
  ways.push_back({"reference resident", rmse(candidate, stored_reference.array.source()), sending});
  ways.push_back(
      {"both resident", rmse(stored_candidate.array.source(), stored_reference.array.source()), flags.calls});
  ways.push_back({"both in a region",
                  rmse(region.source(candidate.spec()), region.source(reference.spec(), bytes)), sending});
  Way& resident = ways[2];
  Echoes echoes;
  for (int round = -1; round < flags.rounds; ++round) {
    for (Way& way : ways) Round(&way, right, round >= 0);
    if (round < 0) continue;
    Trace(&resident, (flags.calls + 3) / 4);
    Round(echo, flags.calls, Median(resident.kernel_us), &echoes);
  }
  const std::string size = ", 2 x " + (bytes < kMiB ? std::to_string(bytes / kKiB) + " KiB"
                                                    : std::to_string(bytes / kMiB) + " MiB");
  for (const Way& way : ways) report->Add(way.name + size, Values(way, static_cast<double>(bytes)));
  report->Add("raw gRPC echo of 256 B" + size,
              {{"p50_us", Median(echoes.at_once_us)}, {"p99_us", Quantile(echoes.at_once_us, .99)}});
  report->Add("echo after the kernel's time" + size, {{"p50_beyond_kernel_us", Median(echoes.held_us)}});
  report->Add("the same by another thread" + size, {{"p50_beyond_kernel_us", Median(echoes.held_apart_us)}});
}

/// A square matrix of about `bytes`, transposed from a region into it: both phases of copies.
void MeasureTranspose(client::Client* client, const float* data, size_t bytes, int rounds, Report* report) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(bytes / sizeof(float))));
  const int64_t dims[] = {side, side};
  const ArraySpec spec = MakeSpec(DType::kF32, dims).value();
  const auto used = static_cast<double>(spec.bytes());
  const auto region = Take(client->Share(2 * bytes));
  const auto* result = reinterpret_cast<const float*>(region.data() + bytes);
  std::memcpy(region.data(), data, static_cast<size_t>(spec.bytes()));
  std::vector<double> wall, in, out, kernel;
  for (int round = -1; round < rounds; ++round) {
    std::memset(region.data() + bytes, 0, static_cast<size_t>(spec.bytes()));
    const client::ArraySource operands[] = {region.source(spec)};
    const auto reply = Take(client->ExecuteInto(client::TransposeOp{}, operands, region.place(bytes)));
    for (int64_t i = 0; i < side * side; i += 997)
      if (result[i] != data[i % side * side + i / side]) throw std::runtime_error("a transpose is wrong");
    if (round < 0) continue;
    wall.push_back(reply.client_wall_us);
    in.push_back(reply.timing.h2d_us.value_or(0));
    out.push_back(reply.timing.d2h_us.value_or(0));
    kernel.push_back(reply.timing.kernel_us.value_or(0));
  }
  const auto rate = [&](const std::vector<double>& micros) {
    return Median(micros) > 0 ? used / Median(micros) / 1e3 : 0;
  };
  report->Add("transpose, region to region, " + std::to_string(side) + "²", {{"p50_us", Median(wall)},
                                                                             {"kernel_us", Median(kernel)},
                                                                             {"in_GB/s", rate(in)},
                                                                             {"out_GB/s", rate(out)}});
}

int Access(const Common& common, const Flags& flags) {
  const size_t bytes = flags.mebibytes * kMiB;
  const float* data = RandomFloats(2 * bytes / sizeof(float), 1);
  const Child server = StartServer(common, {"--allow-regions", "/tilewire-"});
  const Child raw("tilewire_raw_peer", {std::to_string(64 << 20)});
  auto client = client::Client::Connect(server.address());
  RawClient echo(raw.address());
  Report report(server.ready_line() + "\nRMSE f32, operands brought in different ways, in turns; " +
                std::to_string(flags.rounds) + " rounds");
  for (const size_t each : {size_t{4 * kKiB}, bytes}) Measure(&client, &echo, data, each, flags, &report);
  MeasureTranspose(&client, data, bytes, flags.rounds, &report);
  report.Note(
      "candidates_GB/s: bytes of one operand over the time of the call, as if the other were the reference");
  report.Note("before_us, after_us: what the server did around its kernels, from calls with a trace");
  report.Print(common.json);
  return 0;
}

}  // namespace

void AddAccess(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand("access", "operands that are sent, resident, or in shared memory");
  command->add_option("--mib", flags->mebibytes, "bytes of one large operand, MiB")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--connections", flags->connections, "of calls that send; 0: by size and cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  command->add_option("--calls", flags->calls, "calls of a round that send nothing large")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->add_option("--rounds", flags->rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->callback([=, &common] { *run = [=, &common] { return Access(common, *flags); }; });
}

}  // namespace tilewire::bench

// Uploads, downloads and both at once over round trips that a relay makes, with the server's windows by
// distance, with one window for all, and with gRPC's probe beside them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/base/limits.h"
#include "tests/bench/bench.h"
#include "tests/bench/relay.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

struct Flags {
  size_t mebibytes = 64;
  int rounds = 3;
  int64_t line_megabits = 0;
  std::vector<double> round_trips_ms{0.2, 1, 10, 40, 100};
  std::vector<uint32_t> connections{1, 4, 8};
  std::vector<std::string> windows{"fitted", "fixed", "probe"};
  bool warm_up = false;
};

constexpr int64_t kEdge = 64;  ///< of the matrices that are transposed
constexpr int kSmallCalls = 50;
constexpr std::array<int, 3> kTold{1, 2, 10};  ///< calls of a fresh connection

/// The arrays of all calls, and what comes of them.
class Data {
 public:
  explicit Data(size_t mebibytes)
      : count_((mebibytes << 20) / sizeof(float)),
        values_(RandomFloats(count_, 1)),
        rmse_(HostRmse(values_, values_ + count_ / 2, count_ / 2)),
        transposed_(count_),
        got_(count_) {
    constexpr size_t kMatrix = kEdge * kEdge;
    for (size_t i = 0; i < count_; ++i)
      transposed_[i / kMatrix * kMatrix + i % kEdge * kEdge + i / kEdge % kEdge] = values_[i];
  }

  size_t bytes() const { return count_ * sizeof(float); }
  client::ArraySource half(size_t which) const { return Source(values_ + which * (count_ / 2), count_ / 2); }
  const float* floats() const { return values_; }
  client::ArraySource matrices() const {
    const int64_t dims[] = {static_cast<int64_t>(count_) / (kEdge * kEdge), kEdge, kEdge};
    return client::ArraySource::FromMemory(MakeSpec(DType::kF32, dims).value(), values_);
  }
  client::Sink sink() {
    std::fill(got_.begin(), got_.end(), 0.0f);
    return [this](uint64_t offset, std::span<const uint8_t> bytes) {
      std::memcpy(reinterpret_cast<char*>(got_.data()) + offset, bytes.data(), bytes.size());
      return Status();
    };
  }

  void CheckRmse(double value) const { Check(value == rmse_); }
  void CheckGot() const { Check(std::memcmp(got_.data(), values_, bytes()) == 0); }
  void CheckTransposed() const { Check(std::memcmp(got_.data(), transposed_.data(), bytes()) == 0); }

 private:
  static void Check(bool right) {
    if (!right) throw std::runtime_error("an answer is wrong");
  }

  const size_t count_;
  const float* const values_;
  const double rmse_;
  std::vector<float> transposed_, got_;
};

template <typename T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

std::vector<std::string> FlagsOf(const std::string& windows) {
  if (windows == "fixed") return {"--receive-window", "128KiB"};
  if (windows == "probe") return {"--receive-window", "0"};
  return {};
}

/// A server, and the arrays at it.
class Side {
 public:
  Side(const Common& common, const std::string& windows, const Data& data)
      : server_(StartServer(common, FlagsOf(windows))),
        near_(client::Client::Connect(server_.address())),
        stored_(Must(near_.Put(data.matrices())).array) {}
  const std::string& address() const { return server_.address(); }
  const std::string& stored() const { return stored_.id(); }

 private:
  Child server_;
  client::Client near_;
  const client::OwnedArray stored_;
};

/// A way to a server, of connections that nobody had before.
class Way {
 public:
  Way(const Side& side, const Flags& flags, double round_trip_ms, Data* data)
      : stored_(side.stored()),
        relay_(side.address(), std::chrono::microseconds(static_cast<int64_t>(round_trip_ms * 500)),
               flags.line_megabits * 1'000'000 / 8),
        client_(client::Client::Connect(relay_.address())),
        data_(data) {}

  double Upload(uint32_t connections) {
    const auto reply = Must(client_.Rmse(data_->half(0), data_->half(1), {}, Options(connections)));
    data_->CheckRmse(reply.values[0]);
    return Rate(reply.reply, 1);
  }
  double Download(uint32_t connections) {
    const auto reply = Must(client_.Get(stored_, data_->sink(), Options(connections)));
    data_->CheckGot();
    return Rate(reply, 1);
  }
  double Both(uint32_t connections) {
    const auto reply =
        Must(client_.Transpose(data_->matrices(), {.axes = {0, 2, 1}}, data_->sink(), Options(connections)));
    data_->CheckTransposed();
    return Rate(reply, 2);
  }
  void SmallCalls() { (void)Calls(&client_, data_->floats(), kSmallCalls, nullptr); }

 private:
  static client::CallOptions Options(uint32_t connections) {
    client::CallOptions options;
    options.connections = connections;
    options.concurrent_sink = true;
    return options;
  }
  /// MB/s.
  double Rate(const client::Reply& reply, int times) const {
    return times * static_cast<double>(data_->bytes()) / reply.client_wall_us;
  }

  const std::string stored_;
  Relay relay_;
  client::Client client_;
  Data* const data_;
};

using Call = double (Way::*)(uint32_t connections);
constexpr std::pair<const char*, Call> kUp{"up", &Way::Upload}, kDown{"down", &Way::Download},
    kBoth{"both", &Way::Both};

std::string Number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

using Sides = std::vector<std::unique_ptr<Side>>;

/// The sides take turns; the first round warms up.
void MeasureRates(const Flags& flags, const Sides& sides, double round_trip_ms, Data* data, Report* report) {
  std::vector<std::unique_ptr<Way>> ways;
  for (const auto& side : sides) ways.push_back(std::make_unique<Way>(*side, flags, round_trip_ms, data));
  for (const uint32_t connections : flags.connections) {
    Report::Values values;
    for (const auto& [name, call] : {kUp, kDown, kBoth}) {
      std::vector<std::vector<double>> rates(ways.size());
      for (int round = -1; round < flags.rounds; ++round)
        for (size_t i = 0; i < ways.size(); ++i)
          if (const double rate = (ways[i].get()->*call)(connections); round >= 0) rates[i].push_back(rate);
      for (size_t i = 0; i < ways.size(); ++i)
        values.emplace_back(std::string(name) + "_" + flags.windows[i], Median(rates[i]));
    }
    report->Add(Number(round_trip_ms) + " ms x " + std::to_string(connections), values);
  }
}

/// The first, second and tenth call of fresh connections, after small calls where `used`.
void MeasureWarmUp(const Flags& flags, const Sides& sides, double round_trip_ms, bool used, Data* data,
                   Report* report) {
  for (const auto& [name, call] : {kUp, kDown}) {
    std::vector<std::array<std::vector<double>, kTold.size()>> rates(sides.size());
    for (int round = 0; round < flags.rounds; ++round)
      for (size_t i = 0; i < sides.size(); ++i) {
        Way way(*sides[i], flags, round_trip_ms, data);
        if (used) way.SmallCalls();
        for (int count = 1; count <= kTold.back(); ++count) {
          const double rate = (way.*call)(1);
          const auto* const told = std::find(kTold.begin(), kTold.end(), count);
          if (told != kTold.end()) rates[i][static_cast<size_t>(told - kTold.begin())].push_back(rate);
        }
      }
    Report::Values values;
    for (size_t i = 0; i < sides.size(); ++i)
      for (size_t call_i = 0; call_i < kTold.size(); ++call_i)
        values.emplace_back(flags.windows[i] + "_" + std::to_string(kTold[call_i]), Median(rates[i][call_i]));
    report->Add(Number(round_trip_ms) + " ms " + name + (used ? " after small calls" : ""), values);
  }
}

int Distance(const Common& common, const Flags& flags) {
  Data data(flags.mebibytes);
  Report report("MB/s of calls with " + std::to_string(flags.mebibytes) + " MiB, median of " +
                std::to_string(flags.rounds) +
                "; windows fitted: by distance, fixed: 128 KiB, probe: gRPC's" +
                (flags.warm_up ? "; the first, second and tenth call of one fresh connection" : ""));
  report.Follow(common.json);
  Sides sides;
  for (const std::string& windows : flags.windows)
    sides.push_back(std::make_unique<Side>(common, windows, data));
  for (const double round_trip_ms : flags.round_trips_ms) {
    if (!flags.warm_up) {
      MeasureRates(flags, sides, round_trip_ms, &data, &report);
      continue;
    }
    for (const bool used : {false, true}) MeasureWarmUp(flags, sides, round_trip_ms, used, &data, &report);
  }
  report.Print(common.json);
  return 0;
}

}  // namespace

void AddDistance(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command =
      app->add_subcommand("distance", "uploads and downloads over round trips that a relay makes");
  command->add_option("--mib", flags->mebibytes, "bytes of a call each way, MiB")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command->add_option("--round-trips", flags->round_trips_ms, "round trips, ms")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0));
  command->add_option("--connections", flags->connections, "connections of a call")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  command->add_option("--windows", flags->windows, "servers' windows: fitted, fixed, probe")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"fitted", "fixed", "probe"}));
  command
      ->add_option("--line-megabits", flags->line_megabits,
                   "most that a connection carries each way, Mbit/s; 0: as much as there is")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  command->add_flag(
      "--warm-up", flags->warm_up,
      "instead: the first, second and tenth call of one fresh connection, also after small calls");
  command->add_option("--rounds", flags->rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->callback([=, &common] { *run = [=, &common] { return Distance(common, *flags); }; });
}

}  // namespace tilewire::bench

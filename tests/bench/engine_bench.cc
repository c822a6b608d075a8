// tilewire_engine_bench: the engine alone, without gRPC. Blocks that are filled already go through the whole
// pipeline (copy in, kernels, copy out), overlapped and one after the other, beside plain copies of as many
// bytes on the same lanes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "server/base/limits.h"
#include "server/engine/device/cpu/device.h"
#include "server/engine/device/cuda/device.h"
#include "server/engine/engine.h"
#include "server/engine/job/intake.h"
#include "tests/bench/copies.h"

namespace {

using namespace tilewire;          // NOLINT(google-build-using-namespace)
using namespace tilewire::engine;  // NOLINT(google-build-using-namespace)

struct Flags {
  std::string device = "auto", json;
  int64_t mebibytes = 1024, block_kib = 4096;
  int lanes = 4, rounds = 7, spare = 2;
};

template <typename T>
T Take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

std::unique_ptr<Device> OpenDevice(const std::string& name) {
  if (name == "cpu" || (name == "auto" && CudaDeviceCount() == 0)) return OpenCpuDevice(0);
  const size_t colon = name.find(':');
  return Take(OpenCudaDevice(colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1))));
}

/// An operation of about `bytes` bytes of operands.
struct Case {
  std::string name;
  std::function<std::unique_ptr<Operation>(int64_t bytes)> make;
};

std::vector<Case> Cases() {
  const auto spec = [](std::vector<int64_t> dims) { return Take(MakeSpec(DType::kF32, dims)); };
  const auto transpose = [spec](std::vector<int64_t> dims, std::vector<int32_t> axes) {
    return transpose::MakeProblem(Take(transpose::Plan::Make(spec(std::move(dims)), axes)));
  };
  return {
      {"rmse",
       [spec](int64_t bytes) {
         return rmse::MakeProblem(Take(rmse::Plan::Make(spec({bytes / 8}), {}, rmse::Output::kRmse)));
       }},
      {"gaussian_pdf",
       [spec](int64_t bytes) {
         return gaussian::MakeProblem(Take(gaussian::Plan::Make(spec({bytes / 4}), 0.5, 0.25)));
       }},
      {"transpose",
       [transpose](int64_t bytes) {
         return transpose({4096, bytes / 4 / 4096}, {1, 0});
       }},
      {"transpose_batched",
       [transpose](int64_t bytes) {
         return transpose({bytes / 4 / (1 << 18), 512, 512}, {0, 2, 1});
       }},
  };
}

/// Calls `step(resume)` until it returns false. Where it returns true, it calls `resume` once, meanwhile or
/// later and on any thread; that thread, or this one if it was meanwhile, takes the next step, so that steps
/// never nest. `resume` keeps the step alive.
template <typename Step>
void Repeat(const std::shared_ptr<Step>& step) {
  for (;;) {
    // By the step's return or by resume(), whichever comes first: the second one goes on.
    const auto reached = std::make_shared<std::atomic<bool>>(false);
    const bool more = (*step)([step, reached] {
      if (reached->exchange(true)) Repeat(step);
    });
    if (!more || !reached->exchange(true)) return;
  }
}

/// Sends every block of every operand, operands in turn, as staging blocks come free, on the thread that
/// frees them: no thread is woken for it. `fill`: writes random finite values first.
class Feeder {
 public:
  Feeder(const std::shared_ptr<Job>& job, bool fill) : job_(job), intake_(job), fill_(fill) {}

  /// As Repeat wants it.
  template <typename Resume>
  bool operator()(const Resume& resume) {
    while (job_->status().ok() && !Done()) {
      const auto place = intake_.NextPlace();
      if (!place) {
        intake_.WhenPlaceFree(resume);
        return true;
      }
      if (fill_) Fill(*place);
      intake_.Filled(place->size());
    }
    if (job_->status().ok()) job_->InputEnded();
    return false;
  }

 private:
  /// Whether all was sent; begins the next block if one is to be begun.
  bool Done() {
    if (intake_.chunk_left() > 0) return false;
    const auto operands = job_->operation().operands();
    const int64_t total = operands[0].bytes(),
                  at = next_ / static_cast<int64_t>(operands.size()) * job_->block_bytes();
    if (at >= total) return true;
    const auto operand = static_cast<uint32_t>(next_++ % static_cast<int64_t>(operands.size()));
    const Status status = intake_.BeginChunk(
        operand, static_cast<uint64_t>(at), static_cast<uint64_t>(std::min(job_->block_bytes(), total - at)));
    if (!status.ok()) job_->Fail(status);
    return false;
  }

  void Fill(std::span<std::byte> place) {
    for (size_t i = 0; i + 4 <= place.size(); i += 4) {
      seed_ = seed_ * 1664525 + 1013904223;
      const float value = static_cast<float>(seed_ >> 8) * 0x1p-24f;
      std::memcpy(place.data() + i, &value, 4);
    }
  }

  const std::shared_ptr<Job> job_;
  Intake intake_;
  const bool fill_;
  int64_t next_ = 0;
  uint32_t seed_ = 1;
};

/// Takes all output and lets it go, on the thread that brings it; `done` is told how the job ended.
class Drain {
 public:
  Drain(std::shared_ptr<Job> job, std::promise<Status>* done) : job_(std::move(job)), done_(done) {}

  template <typename Resume>
  bool operator()(const Resume& resume) {
    if (ended_) return false;
    job_->NextOutput([this, resume](Result<std::optional<OutputPiece>> piece) {
      ended_ = !piece || !*piece;
      const Status status = piece ? Status() : piece.error();
      piece = std::optional<OutputPiece>();
      if (ended_) done_->set_value(status);
      resume();
    });
    return true;
  }

 private:
  const std::shared_ptr<Job> job_;
  std::promise<Status>* const done_;
  bool ended_ = false;
};

struct Run {
  double wall_us = 0;     ///< from the first copy's or kernel's begin to the last one's end on the device
  double longest_us = 0;  ///< union of the longest device stage
  std::string longest;
};

Run RunOnce(Engine& engine, std::unique_ptr<Operation> operation, bool fill) {
  JobOptions options;
  options.trace = true;
  std::promise<Result<std::shared_ptr<Job>>> opened;
  engine.Open(std::move(operation), options, [&opened](auto job) { opened.set_value(std::move(job)); });
  const auto job = Take(opened.get_future().get());
  std::promise<Status> ended;
  Repeat(std::make_shared<Drain>(job, &ended));
  Repeat(std::make_shared<Feeder>(job, fill));
  if (Status status = ended.get_future().get(); !status.ok()) throw std::runtime_error(status.ToString());
  const Timing timing = job->timing();
  Run run;
  TimePoint begin = TimePoint::max(), end = TimePoint::min();
  for (const Span& span : timing.spans) {
    if (span.stage != Stage::kH2D && span.stage != Stage::kKernel && span.stage != Stage::kD2H) continue;
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
  run.wall_us = std::chrono::duration<double, std::micro>(end - begin).count();
  for (const Stage stage : {Stage::kH2D, Stage::kKernel, Stage::kD2H}) {
    if (timing.of(stage) <= run.longest_us) continue;
    run.longest_us = timing.of(stage);
    run.longest = StageName(stage);
  }
  return run;
}

Run Median(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.wall_us < b.wall_us; });
  return runs[runs.size() / 2];
}

nlohmann::json Measure(const Flags& flags) {
  const EngineOptions options{.lanes = flags.lanes,
                              .block_bytes = flags.block_kib << 10,
                              .pinned_bytes = 2 * kGiB,
                              .spare_blocks = flags.spare};
  EngineOptions serial = options;
  serial.overlap = false;
  const auto overlapped = Take(Engine::Make(OpenDevice(flags.device), options));
  const auto plain = Take(Engine::Make(OpenDevice(flags.device), serial));
  const auto device = OpenDevice(flags.device);
  bench::Copies copies(device.get(), flags.lanes, options.block_bytes);
  nlohmann::json rows = nlohmann::json::array();
  std::printf("%s \"%s\", %lld MiB of operands, blocks of %lld KiB, %d lanes, median of %d, milliseconds\n",
              device->facts().id.c_str(), device->facts().name.c_str(),
              static_cast<long long>(flags.mebibytes), static_cast<long long>(flags.block_kib), flags.lanes,
              flags.rounds);
  std::printf("%-18s %9s %9s %9s %9s %10s %14s %9s\n", "", "copies", "serial", "overlap", "GB/s", "of copies",
              "longest stage", "wall / it");
  for (const Case& c : Cases()) {
    const auto bytes = flags.mebibytes << 20;
    std::vector<Run> fast, slow, copied;
    const int64_t out = c.make(bytes)->result().bytes() > bytes / 2 ? bytes : 0;
    for (int round = -1; round < flags.rounds; ++round) {  // the first one warms up, and fills the blocks
      const double copy_us = copies.Run(bytes, out);
      const Run a = RunOnce(*overlapped, c.make(bytes), round < 0),
                b = RunOnce(*plain, c.make(bytes), round < 0);
      if (round < 0) continue;
      copied.push_back({copy_us, copy_us, ""});
      fast.push_back(a);
      slow.push_back(b);
    }
    const Run best = Median(fast), worst = Median(slow), copy = Median(copied);
    std::printf("%-18s %9.2f %9.2f %9.2f %9.2f %9.1f%% %14s %9.3f\n", c.name.c_str(), copy.wall_us / 1e3,
                worst.wall_us / 1e3, best.wall_us / 1e3, static_cast<double>(bytes) / best.wall_us / 1e3,
                100 * copy.wall_us / best.wall_us, best.longest.c_str(), best.wall_us / best.longest_us);
    rows.push_back({{"case", c.name},
                    {"bytes", bytes},
                    {"copies_us", copy.wall_us},
                    {"serial_us", worst.wall_us},
                    {"overlapped_us", best.wall_us},
                    {"longest_stage", best.longest},
                    {"longest_stage_us", best.longest_us}});
  }
  return {{"device", device->facts().id},
          {"name", device->facts().name},
          {"block_bytes", flags.block_kib << 10},
          {"lanes", flags.lanes},
          {"spare_blocks", flags.spare},
          {"rounds", flags.rounds},
          {"rows", rows}};
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("The engine alone: overlapped and serial pipelines beside plain copies");
  app.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--mib", flags.mebibytes, "operand bytes of a job, MiB")->check(CLI::Range(8, 1 << 20));
  app.add_option("--block-kib", flags.block_kib, "block size, KiB")->check(CLI::Range(4, 262144));
  app.add_option("--lanes", flags.lanes, "lanes")->check(CLI::Range(1, 64));
  app.add_option("--spare", flags.spare, "staging blocks beside the one being filled; a server has 2")
      ->check(CLI::Range(2, 16));
  app.add_option("--rounds", flags.rounds, "measured rounds")->check(CLI::Range(1, 1000));
  app.add_option("--json", flags.json, "also write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    const nlohmann::json result = Measure(flags);
    if (flags.json.empty()) return 0;
    std::ofstream file(flags.json);
    if (!(file << result.dump(2) << "\n")) throw std::runtime_error("cannot write " + flags.json);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
  return 0;
}

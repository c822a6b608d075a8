// A load test that shares nothing with ours: the stub that protoc generates, one thread a caller, and sorted
// latencies. It calls Kernels.Rmse over two small f32 arrays and prints what it saw as JSON, so that what
// tilewire-load and the server say can be held against it (agree.py).
//
// A call is what it is to a program that has two arrays and wants their RMSE: making the request, sending it,
// reading the answer, and freeing what the call held. Its latency is all of that.
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tilewire/v1/kernels.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;
namespace v1 = tilewire::v1;

struct Flags {
  std::string server;
  int callers = 1;
  double rate = 0;  // calls a second; 0: each caller calls again when it has its answer
  double seconds = 10, warmup = 1;
  int elements = 1024;
};

double Micros(Clock::duration length) {
  return std::chrono::duration<double, std::micro>(length).count();
}

/// Two random arrays, and their RMSE in plain binary64.
struct Problem {
  std::vector<float> a, b;
  double expected = 0;
};

Problem MakeProblem(int elements, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-4, 4);
  Problem problem;
  double sum = 0;
  for (int i = 0; i < elements; ++i) {
    problem.a.push_back(values(random));
    problem.b.push_back(values(random));
    const double difference = double(problem.a.back()) - double(problem.b.back());
    sum += difference * difference;
  }
  problem.expected = std::sqrt(sum / elements);
  return problem;
}

void FillOperand(const std::vector<float>& values, v1::Operand* operand) {
  operand->mutable_spec()->set_dtype(v1::DTYPE_F32);
  operand->mutable_spec()->add_shape(static_cast<int64_t>(values.size()));
  operand->set_data(values.data(), values.size() * sizeof(float));
}

/// How a call ended.
struct Answer {
  grpc::Status status;
  bool right = false;
  double server_wall_us = 0;
};

bool Right(const v1::RmseResponse& response, double expected) {
  double value = 0;
  const std::string& data = response.result().data();
  if (data.size() != sizeof(value)) return false;
  std::copy_n(data.data(), sizeof(value), reinterpret_cast<char*>(&value));
  return std::abs(value - expected) <= 1e-12 * expected;
}

/// One call, from arrays to an answer; nothing of it is left.
Answer CallOnce(v1::Kernels::Stub* stub, const Problem& problem) {
  v1::RmseRequest request;
  request.mutable_op();
  FillOperand(problem.a, request.mutable_a());
  FillOperand(problem.b, request.mutable_b());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::RmseResponse response;
  const grpc::Status status = stub->Rmse(&context, request, &response);
  if (!status.ok()) return {.status = status};
  return {.status = status,
          .right = Right(response, problem.expected),
          .server_wall_us = response.timing().wall_us()};
}

/// What one caller saw of the calls of the window.
struct Seen {
  std::vector<double> micros;
  double server_wall_us = 0;
  uint64_t wrong = 0, errors = 0, made = 0;  // made: of the warm-up too
  grpc::Status first_error;
};

/// All callers of one run.
class Load {
 public:
  explicit Load(const Flags& flags) : flags_(flags), seen_(static_cast<size_t>(flags.callers)) {
    for (uint32_t seed = 1; seed <= 4; ++seed) problems_.push_back(MakeProblem(flags.elements, seed));
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else all channels share one connection
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    for (int i = 0; i < std::min(flags.callers, 8); ++i) {
      const auto channel =
          grpc::CreateCustomChannel(flags.server, grpc::InsecureChannelCredentials(), arguments);
      // gRPC 1.51 takes some connections for failed that are not, and for a second it fails every call then.
      channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30));
      stubs_.push_back(v1::Kernels::NewStub(channel));
    }
  }

  ordered_json Run() {
    start_ = Clock::now();
    std::vector<std::thread> callers;
    for (int i = 0; i < flags_.callers; ++i)
      callers.emplace_back([this, i] { CallOn(static_cast<size_t>(i)); });
    for (auto& caller : callers) caller.join();
    return Json();
  }

  /// What went wrong first at each caller, a line each.
  void TellErrors() const {
    for (size_t caller = 0; caller < seen_.size(); ++caller) {
      const auto& [micros, wall, wrong, errors, made, first] = seen_[caller];
      if (wrong > 0) std::fprintf(stderr, "caller %zu: %" PRIu64 " wrong values\n", caller, wrong);
      if (errors > 0)
        std::fprintf(stderr,
                     "caller %zu: %" PRIu64 " of %" PRIu64 " calls failed, the first with error %d: %s\n",
                     caller, errors, made, int{first.error_code()}, first.error_message().c_str());
    }
  }

 private:
  Clock::time_point At(double seconds) const {
    return start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  /// When the next call is due; false when the run is over.
  bool Next(Clock::time_point* due) {
    if (flags_.rate == 0) {
      *due = Clock::now();
    } else {
      *due = At(static_cast<double>(next_++) / flags_.rate);
    }
    if (*due >= At(flags_.warmup + flags_.seconds)) return false;
    std::this_thread::sleep_until(*due);
    return true;
  }

  void CallOn(size_t caller) {
    prctl(PR_SET_TIMERSLACK, 1000);  // ns: the kernel's own 50 us would make every start of an open loop late
    Seen& seen = seen_[caller];
    const auto begin = At(flags_.warmup), end = At(flags_.warmup + flags_.seconds);
    std::mt19937 random(static_cast<uint32_t>(caller + 1));
    for (Clock::time_point due; Next(&due);) {
      const Problem& problem = problems_[random() % problems_.size()];
      const Answer answer = CallOnce(stubs_[caller % stubs_.size()].get(), problem);
      const auto now = Clock::now();
      ++seen.made;
      // As tilewire-load counts: closed loops by when a call ended, open ones by when it was due.
      const auto counted = flags_.rate == 0 ? now : due;
      if (counted < begin || counted >= end) continue;
      if (!answer.status.ok()) {
        if (seen.errors++ == 0) seen.first_error = answer.status;
        continue;
      }
      seen.micros.push_back(Micros(now - due));
      seen.server_wall_us += answer.server_wall_us;
      seen.wrong += !answer.right;
    }
  }

  ordered_json Json() const {
    std::vector<double> micros;
    double wall = 0, sum = 0;
    uint64_t wrong = 0, errors = 0, made = 0;
    for (const Seen& seen : seen_) {
      micros.insert(micros.end(), seen.micros.begin(), seen.micros.end());
      wall += seen.server_wall_us;
      wrong += seen.wrong;
      errors += seen.errors;
      made += seen.made;
    }
    std::sort(micros.begin(), micros.end());
    for (const double one : micros) sum += one;
    const auto count = static_cast<double>(micros.size());
    const auto at = [&](double share) {
      return micros.empty() ? 0.0 : micros[std::min(micros.size() - 1, static_cast<size_t>(share * count))];
    };
    return {{"callers", flags_.callers},
            {"rate", flags_.rate},
            {"seconds", flags_.seconds},
            {"made", made},
            {"calls", micros.size() + errors},
            {"errors", errors},
            {"wrong", wrong},
            {"calls_per_second", count / flags_.seconds},
            {"latency_us",
             {{"min", at(0)},
              {"mean", micros.empty() ? 0.0 : sum / count},
              {"p50", at(0.5)},
              {"p90", at(0.9)},
              {"p99", at(0.99)},
              {"max", micros.empty() ? 0.0 : micros.back()}}},
            {"server_wall_us", micros.empty() ? 0.0 : wall / count}};
  }

  const Flags flags_;
  std::vector<Problem> problems_;
  std::vector<std::unique_ptr<v1::Kernels::Stub>> stubs_;
  std::vector<Seen> seen_;  // one a caller
  Clock::time_point start_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Calls Kernels.Rmse over small arrays through a generated stub; prints what it saw as JSON"};
  app.add_option("--server", flags.server, "address of a tilewired")->required();
  app.add_option("--callers", flags.callers, "calls under way at most")->check(CLI::Range(1, 1024));
  app.add_option("--rate", flags.rate, "calls a second, due at equal distances; 0: a closed loop")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--seconds", flags.seconds, "measured window")->check(CLI::Range(0.01, 3600.0));
  app.add_option("--warmup", flags.warmup, "seconds before it")->check(CLI::Range(0.0, 3600.0));
  app.add_option("--elements", flags.elements, "f32 elements of each operand")->check(CLI::Range(1, 500'000));
  CLI11_PARSE(app, argc, argv);
  Load load(flags);
  const ordered_json seen = load.Run();
  std::puts(seen.dump(1).c_str());
  load.TellErrors();
  const bool clean = seen["errors"] == 0 && seen["wrong"] == 0 && seen["calls"] > 0;
  return clean ? 0 : 1;
}

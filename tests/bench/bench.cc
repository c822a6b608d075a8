#include "tests/bench/bench.h"

#include <sys/mman.h>

#include <stdexcept>

#include "kernels/rmse/rmse.h"

namespace tilewire::bench {

float* RandomFloats(size_t count, uint64_t seed) {
  auto* data = static_cast<float*>(
      mmap(nullptr, count * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (data == MAP_FAILED) throw std::runtime_error("not enough memory for the source");
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    data[i] = static_cast<float>(seed >> 40) * 0x1p-24f;
  }
  return data;
}

client::ArraySource Source(const float* data, size_t count) {
  const int64_t dims[] = {static_cast<int64_t>(count)};
  return client::ArraySource::FromMemory(MakeSpec(DType::kF32, dims).value(), data);
}

double HostRmse(const float* a, const float* b, size_t count) {
  const int64_t dims[] = {static_cast<int64_t>(count)};
  const auto plan = rmse::Plan::Make(MakeSpec(DType::kF32, dims).value(), {}, rmse::Output::kRmse).value();
  std::vector<double> sums(static_cast<size_t>(plan.scratch_bytes()) / sizeof(double));
  for (int64_t i = 0; i < plan.range_count(); ++i)
    rmse::HostRange(plan, plan.range(i), 0, plan.range(i).items(), a, b, sums.data());
  double result = 0;
  rmse::HostFinish(plan, 0, 1, sums.data(), &result);
  return result;
}

Child StartServer(const Common& common, const std::vector<std::string>& extra, const std::string& listen) {
  std::vector<std::string> arguments = {
      "--listen",         listen,         "--device",        common.device, "--block-bytes",
      common.block_bytes, "--host-bytes", common.host_bytes, "--log-level", "error"};
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  return Child("tilewired", std::move(arguments));
}

std::vector<double> Calls(client::Client* client, const float* data, int count,
                          std::vector<client::Timing>* timings) {
  client::CallOptions options;
  options.form = client::CallForm::kUnary;
  std::vector<double> micros;
  if (timings) timings->clear();
  for (int i = 0; i < count; ++i) {
    const auto reply = client->Rmse(Source(data, 512), Source(data + 512, 512), {}, options);
    if (!reply) throw std::runtime_error(reply.error().ToString());
    micros.push_back(reply->reply.client_wall_us);
    if (timings) timings->push_back(reply->reply.timing);
  }
  return micros;
}

}  // namespace tilewire::bench

// The operands of one RMSE on the device, filled with random numbers, and its exact answer from the host:
// shared by our kernels, the ladder and CUB.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/device.h"
#include "kernels/rmse/rmse.h"

namespace tilewire::bench {

/// Operands a and b, and room for the results. Used by one thread.
class RmseData {
 public:
  static Result<RmseData> Make(rmse::Plan plan, uint64_t seed, Stream stream);

  const rmse::Plan& plan() const { return plan_; }
  const void* a() const { return a_.data(); }
  const void* b() const { return b_.data(); }
  double* result() const { return result_.as<double>(); }
  int64_t results() const { return plan_.result().shape.elements(); }

  /// Waits for the stream and fetches the results.
  Result<std::vector<double>> Results(Stream stream) const;
  /// Waits for the stream, and compares the results with what the host version computes from the same
  /// operands: the same bits (tolerance 0), or every value within a relative tolerance. INTERNAL names the
  /// first wrong value.
  Result<Check> Compare(double tolerance, Stream stream) const;

  /// Device bytes of operands and results.
  static int64_t Bytes(const rmse::Plan& plan) { return 2 * plan.operand().bytes() + plan.result().bytes(); }

 private:
  explicit RmseData(rmse::Plan plan) : plan_(std::move(plan)) {}
  Result<std::vector<double>> Expected() const;

  rmse::Plan plan_;
  DeviceBuffer a_, b_, result_;
};

/// How one implementation computes it.
struct RmseKernel {
  std::string implementation;  ///< "tilewire", "cub", ...
  std::string note;            ///< one sentence, or empty
  int64_t scratch_bytes = 0;
  /// Enqueues one run from data.a() and data.b() to data.result().
  std::function<Status(const RmseData& data, void* scratch, Stream stream)> run;
  double tolerance = 0;      ///< relative; 0: the bits of the contract
  bool reproducible = true;  ///< two runs must give the same bits
};

/// Plan of an operand that is known to be right; throws std::invalid_argument with the reason if it is not.
rmse::Plan PlanRmse(DType dtype, const std::vector<int64_t>& shape, const std::vector<int32_t>& axes);

/// What a server runs for operands that are on the device: tile sums and their combination.
RmseKernel OurRmse(const rmse::Plan& plan);

/// The case of one implementation; an empty name stands for "f32/2048x2048".
Case RmseCase(std::string group, std::string name, const rmse::Plan& plan, const std::vector<int32_t>& axes,
              RmseKernel kernel);

}  // namespace tilewire::bench

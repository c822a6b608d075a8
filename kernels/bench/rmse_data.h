// The operands of one RMSE on the device, filled with random numbers, and its exact answer from the host:
// shared by our kernels, the ladder and CUB.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/device.h"
#include "kernels/rmse/rmse.h"

namespace tilewire::bench {

/// A plan, and the answers once one implementation's case has asked for them: operands are always the same.
struct RmseProblem {
  rmse::Plan plan;
  std::vector<int32_t> axes;
  std::shared_ptr<std::vector<double>> expected;  ///< empty until then
};

/// Throws std::invalid_argument with the reason for an operand or axes that no plan can be made of.
RmseProblem MakeRmseProblem(DType dtype, const std::vector<int64_t>& shape, const std::vector<int32_t>& axes);

/// Operands a and b, and room for the results. Used by one thread.
class RmseData {
 public:
  static Result<RmseData> Make(RmseProblem problem, Stream stream);

  const rmse::Plan& plan() const { return problem_.plan; }
  const void* a() const { return a_.data(); }
  const void* b() const { return b_.data(); }
  double* result() const { return result_.as<double>(); }
  int64_t results() const { return plan().result().shape.elements(); }

  /// Waits for the stream and fetches the results.
  Result<std::vector<double>> Results(Stream stream) const;
  /// Waits for the stream, and compares the results with what the host version computes from the same
  /// operands: the same bits (tolerance 0), or every value within a relative tolerance. INTERNAL names the
  /// first wrong value.
  Result<Check> Compare(double tolerance, Stream stream) const;

 private:
  explicit RmseData(RmseProblem problem) : problem_(std::move(problem)) {}
  Result<std::vector<double>> Compute() const;
  /// Compute(), or what was computed before.
  Result<std::vector<double>> Expected() const;

  RmseProblem problem_;
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

/// What a server runs: tile sums, and their combination. Here over everything as one range.
RmseKernel OurRmse(const rmse::Plan& plan);
/// Operands that are on the device already: everything in as few launches as possible.
RmseKernel OurRmseWhole(const rmse::Plan& plan);

/// The case of one implementation; an empty name stands for "f32/2048x2048".
Case RmseCase(std::string group, std::string name, const RmseProblem& problem, RmseKernel kernel);

}  // namespace tilewire::bench

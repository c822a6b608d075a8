#include "server/engine/operation/operation.h"

#include <utility>

namespace tilewire::engine {
namespace {

class Pass final : public Operation {
 public:
  Pass(std::vector<ArraySpec> results, std::string_view name, std::string_view version)
      : Operation(nullptr), results_(std::move(results)), name_(name), version_(version) {}
  std::string_view name() const override { return name_; }
  std::string_view numeric_version() const override { return version_; }
  std::span<const ArraySpec> operands() const override { return {results_.data(), 1}; }
  std::span<const ArraySpec> results() const override { return results_; }
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, results_[0].bytes()}; }
  bool ranges_fill_result() const override { return results_.size() == 1; }
  bool result_is_operand() const override { return true; }
  void RunHost(Step, const Buffers&, Team&) const override {}

 private:
  const std::vector<ArraySpec> results_;
  const std::string_view name_, version_;
};

}  // namespace

std::unique_ptr<Operation> MakePass(const ArraySpec& spec, std::string_view name, std::string_view version) {
  return MakePass(std::vector<ArraySpec>{spec}, name, version);
}

std::unique_ptr<Operation> MakePass(std::vector<ArraySpec> results, std::string_view name,
                                    std::string_view version) {
  return std::make_unique<Pass>(std::move(results), name, version);
}

}  // namespace tilewire::engine

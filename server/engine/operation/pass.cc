#include "server/engine/operation/operation.h"

namespace tilewire::engine {
namespace {

class Pass final : public Operation {
 public:
  Pass(const ArraySpec& spec, std::string_view name, std::string_view version)
      : Operation(nullptr), spec_(spec), name_(name), version_(version) {}
  std::string_view name() const override { return name_; }
  std::string_view numeric_version() const override { return version_; }
  std::span<const ArraySpec> operands() const override { return {&spec_, 1}; }
  std::span<const ArraySpec> results() const override { return {&spec_, 1}; }
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, spec_.bytes()}; }
  bool ranges_fill_result() const override { return true; }
  bool result_is_operand() const override { return true; }
  void RunHost(Step, const Buffers&, Team&) const override {}

 private:
  const ArraySpec spec_;
  const std::string_view name_, version_;
};

}  // namespace

std::unique_ptr<Operation> MakePass(const ArraySpec& spec, std::string_view name, std::string_view version) {
  return std::make_unique<Pass>(spec, name, version);
}

}  // namespace tilewire::engine

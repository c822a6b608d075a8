#include "client/load/shared_arrays.h"

#include <cstring>
#include <utility>

namespace tilewire::load {
namespace {

/// Arrays begin at pages of their own, as those of a careful user do.
constexpr uint64_t kPage = 4096;

uint64_t WholePages(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

Status SharedArrays::Share(client::Client* client, std::span<const OperationSpec> operations,
                           const Inputs& inputs, std::span<const uint32_t> results,
                           const std::stop_token& stop) {
  client::CallOptions options;
  options.stop = stop;
  for (uint32_t operation = 0; operation < operations.size(); ++operation) {
    const OperationSpec& spec = operations[operation];
    if (spec.access != Access::kRegion) continue;
    const uint64_t step = WholePages(static_cast<uint64_t>(spec.operand.bytes())),
                   result_step = WholePages(spec.result_area_bytes());
    const uint64_t operands = step * spec.operands() * inputs.count();
    auto region = client->Share(operands + result_step * results[operation], {}, options);
    if (!region)
      return Status(
          region.error().code(), std::string(region.error().reason()),
          "memory for \"" + spec.name + "\" cannot be shared: " + std::string(region.error().message()));
    uint64_t offset = 0;
    for (uint32_t input = 0; input < inputs.count(); ++input)
      for (uint32_t operand = 0; operand < spec.operands(); ++operand, offset += step) {
        const auto& bytes = inputs.at(operation, input).operands[operand];
        std::memcpy(region->data() + offset, bytes.data(), bytes.size());
        sources_.emplace(std::tuple(operation, input, operand), region->source(spec.operand, offset));
      }
    for (uint32_t i = 0; i < results[operation]; ++i, offset += result_step)
      results_[operation].push_back({region->data() + offset, region->place(offset)});
    regions_.push_back(*std::move(region));
  }
  return {};
}

const client::ArraySource* SharedArrays::Find(uint32_t operation, uint32_t input, uint32_t operand) const {
  const auto found = sources_.find(std::tuple(operation, input, operand));
  return found == sources_.end() ? nullptr : &found->second;
}

std::vector<ResultPlace> SharedArrays::Results(uint32_t operation) const {
  const auto found = results_.find(operation);
  return found == results_.end() ? std::vector<ResultPlace>() : found->second;
}

size_t SharedArrays::Forget() {
  size_t left = 0;
  for (client::SharedRegion& region : regions_) {
    if (left > 0) {
      ++left;
      continue;
    }
    const Status status = region.Unregister();
    left += !status.ok() && status.code() != Code::kNotFound;
  }
  return left;
}

}  // namespace tilewire::load

#include "client/load/residents.h"

#include <utility>

namespace tilewire::load {

Status Residents::Store(client::Client* client, std::span<const OperationSpec> operations,
                        const Inputs& inputs, double seconds, const std::stop_token& stop) {
  client::CallOptions options;
  options.stop = stop;
  for (uint32_t operation = 0; operation < operations.size(); ++operation) {
    const OperationSpec& spec = operations[operation];
    for (uint32_t input = 0; input < inputs.count(); ++input)
      for (uint32_t operand = 0; operand < spec.operands(); ++operand) {
        if (!spec.stays(operand)) continue;
        const auto& bytes = inputs.at(operation, input).operands[operand];
        auto stored = client->Put(client::ArraySource::FromMemory(spec.operand, bytes.data()),
                                  {.seconds = seconds}, options);
        if (!stored)
          return Status(
              stored.error().code(), std::string(stored.error().reason()),
              "operands of \"" + spec.name + "\" cannot be stored: " + std::string(stored.error().message()));
        sources_.emplace(std::tuple(operation, input, operand), stored->array.source());
        owned_.push_back(std::move(stored->array));
      }
  }
  return {};
}

const client::ArraySource* Residents::Find(uint32_t operation, uint32_t input, uint32_t operand) const {
  const auto found = sources_.find(std::tuple(operation, input, operand));
  return found == sources_.end() ? nullptr : &found->second;
}

size_t Residents::Forget() {
  size_t left = 0;
  for (client::OwnedArray& array : owned_) {
    if (left > 0) {
      array.Release();
      ++left;
      continue;
    }
    const Status status = array.Delete();
    left += !status.ok() && status.code() != Code::kNotFound;
  }
  owned_.clear();
  return left;
}

}  // namespace tilewire::load

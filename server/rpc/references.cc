#include "server/rpc/references.h"

#include "server/rpc/convert.h"

namespace tilewire::rpc {

Result<engine::ArrayUse> ArrayFinder::Find(const std::string& id, const std::string& field) {
  if (const auto known = found_.find(id); known != found_.end()) return known->second;
  TILEWIRE_ASSIGN_OR_RETURN(engine::ArrayUse use, engine_->arrays().Use(id, identity_, field));
  found_.emplace(id, use);
  return use;
}

Result<std::vector<engine::ArrayUse>> ResidentsOf(const v1::Open& open, ArrayFinder* arrays) {
  std::vector<engine::ArrayUse> residents(OperandCount(open));
  for (int i = 0; i < open.references_size(); ++i) {
    const std::string field = "references[" + std::to_string(i) + "]";
    const uint32_t operand = open.references(i).operand();
    if (open.has_put()) return BadValue(field, open.references(i).array(), "none: what is put is sent");
    if (operand >= residents.size())
      return BadValue(field + ".operand", std::to_string(operand),
                      "0 to " + std::to_string(static_cast<int64_t>(residents.size()) - 1));
    if (residents[operand]) return BadValue(field + ".operand", std::to_string(operand), "each operand once");
    TILEWIRE_ASSIGN_OR_RETURN(residents[operand], arrays->Find(open.references(i).array(), field + ".array"));
  }
  return residents;
}

}  // namespace tilewire::rpc

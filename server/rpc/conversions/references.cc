#include "server/rpc/conversions/references.h"

#include "server/rpc/conversions/convert.h"

namespace tilewire::rpc {

Result<engine::ArrayUse> Finder::Array(const std::string& id, const std::string& field) {
  if (const auto known = arrays_.find(id); known != arrays_.end()) return known->second;
  TILEWIRE_ASSIGN_OR_RETURN(engine::ArrayUse use, array_store_->Use(id, identity_, field));
  arrays_.emplace(id, use);
  return use;
}

Result<engine::RegionPart> Finder::Place(const v1::RegionPlace& place, const std::string& field) {
  auto known = regions_.find(place.region());
  if (known == regions_.end()) {
    TILEWIRE_ASSIGN_OR_RETURN(engine::RegionUse use,
                              region_store_->Use(place.region(), identity_, field + ".region"));
    known = regions_.emplace(place.region(), std::move(use)).first;
  }
  return engine::RegionPart{.region = known->second, .offset = place.offset(), .field = field};
}

bool References::any_sent() const {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (sent(i)) return true;
  return false;
}

Result<References> ReferencesOf(const v1::Open& open, size_t operands, Finder* finder) {
  References all{.arrays = std::vector<engine::ArrayUse>(operands),
                 .regions = std::vector<engine::RegionPart>(operands)};
  for (int i = 0; i < open.references_size(); ++i) {
    const v1::Reference& reference = open.references(i);
    const std::string field = "references[" + std::to_string(i) + "]";
    const uint32_t operand = reference.operand();
    if (reference.has_region() && !reference.array().empty())
      return BadValue(field, "an array and a region", "one of them");
    if (open.has_put() && !reference.has_region())
      return BadId(field, reference.array(), "none, or a region: what is put is no array yet");
    if (operand >= all.arrays.size())
      return BadValue(field + ".operand", std::to_string(operand),
                      "0 to " + std::to_string(static_cast<int64_t>(all.arrays.size()) - 1));
    if (!all.sent(operand)) return BadValue(field + ".operand", std::to_string(operand), "each operand once");
    if (reference.has_region()) {
      TILEWIRE_ASSIGN_OR_RETURN(all.regions[operand], finder->Place(reference.region(), field + ".region"));
    } else {
      TILEWIRE_ASSIGN_OR_RETURN(all.arrays[operand], finder->Array(reference.array(), field + ".array"));
    }
  }
  return all;
}

Status Complete(const v1::Options& asked, References references, Finder* finder,
                engine::JobOptions* options) {
  options->residents = std::move(references.arrays);
  options->regions = std::move(references.regions);
  if (!asked.has_result_region()) return {};
  if (options->store)
    return BadValue("options.result_region", "set", "not set where the result is to be stored").value();
  TILEWIRE_ASSIGN_OR_RETURN(options->result_region,
                            finder->Place(asked.result_region(), "options.result_region"));
  return {};
}

}  // namespace tilewire::rpc

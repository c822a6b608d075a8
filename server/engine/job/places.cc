#include "server/engine/job/places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/engine/job/options.h"

namespace tilewire::engine {
namespace {

OperandPlace OperandOf(const Operation& operation, ArrayUse resident, RegionPart part) {
  if (resident) return Resident{std::move(resident)};
  if (!part) return Streamed{};
  if (part.on_device() && !operation.result_is_operand()) return ReadIn{std::move(part)};
  return CopiedFrom{std::move(part)};
}

ResultPlace ResultOf(const Operation& operation, std::shared_ptr<Reservation> room, RegionPart part) {
  if (room && !room->existing().empty()) return StoredBefore{room->existing()};
  if (room) return Stored{std::move(room)};
  if (!part) return HandedOut{};
  if (part.on_device() && !operation.result_is_operand()) return WrittenIn{std::move(part)};
  return CopiedTo{std::move(part)};
}

}  // namespace

std::byte* DataThere(const OperandPlace& place) {
  if (const auto* resident = std::get_if<Resident>(&place)) return resident->array->data();
  if (const auto* there = std::get_if<ReadIn>(&place)) return there->part.data();
  return nullptr;
}

const RegionPart* RegionOf(const ResultPlace& place) {
  if (const auto* copied = std::get_if<CopiedTo>(&place)) return &copied->part;
  if (const auto* written = std::get_if<WrittenIn>(&place)) return &written->part;
  return nullptr;
}

size_t Places::arriving() const {
  return static_cast<size_t>(std::count_if(operands.begin(), operands.end(), Arrives));
}

size_t Places::streamed() const {
  return static_cast<size_t>(std::count_if(operands.begin(), operands.end(), [](const OperandPlace& place) {
    return std::holds_alternative<Streamed>(place);
  }));
}

Status CheckPlaces(const Operation& operation, const JobOptions& options) {
  const RegionPart& result = options.result_region;
  const int64_t result_bytes = operation.result_bytes();
  const std::string what = operation.results().size() == 1
                               ? "the array has"
                               : "the results, each at a multiple of 256 bytes from there, take";
  if (result) TILEWIRE_RETURN_IF_ERROR(result.Holds(result_bytes, true, what));
  for (size_t i = 0; i < options.regions.size(); ++i) {
    const RegionPart& part = options.regions[i];
    const int64_t bytes = operation.operands()[i].bytes();
    if (!part) continue;
    TILEWIRE_RETURN_IF_ERROR(part.Holds(bytes, false));
    TILEWIRE_RETURN_IF_ERROR(result.LiesApart(result_bytes, part, bytes));
  }
  return {};
}

Places MakePlaces(const Operation& operation, std::shared_ptr<Reservation> room, JobOptions* options) {
  Places places{{}, ResultOf(operation, std::move(room), std::exchange(options->result_region, {}))};
  const std::vector<ArrayUse> residents = std::exchange(options->residents, {});
  std::vector<RegionPart> regions = std::exchange(options->regions, {});
  places.operands.reserve(residents.size());
  for (size_t i = 0; i < residents.size(); ++i)
    places.operands.push_back(OperandOf(operation, residents[i], std::move(regions[i])));
  return places;
}

}  // namespace tilewire::engine

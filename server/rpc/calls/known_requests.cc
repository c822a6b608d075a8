#include "server/rpc/calls/known_requests.h"

#include <algorithm>
#include <utility>

#include "server/base/per_thread.h"

namespace tilewire::rpc {

KnownRequests& KnownRequests::OfThisThread() {
  return PerThread<KnownRequests>();
}

std::optional<std::vector<engine::ArrayUse>> KnownRequests::ArraysOf(const Known& known, Finder* finder) {
  std::vector<engine::ArrayUse> uses(known.arrays.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    if (known.arrays[i].empty()) continue;
    auto use = finder->Array(known.arrays[i], "");
    if (!use || (*use)->spec() != known.operation->operands()[i]) return std::nullopt;
    uses[i] = *std::move(use);
  }
  return uses;
}

std::optional<UnaryRequest> KnownRequests::Find(ParseUnary* method, wire::UnaryView* view,
                                                Finder* finder) const {
  if (view->header.size() > kLongestHeader) return std::nullopt;
  const Known& known = known_[PlaceOf(view->header)];
  if (known.method != method || known.header != view->header) return std::nullopt;
  const auto operands = known.operation->operands();
  if (operands.size() != view->operands.size()) return std::nullopt;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool sent = known.arrays[i].empty();
    if (view->operands[i].data_bytes != (sent ? static_cast<uint64_t>(operands[i].bytes()) : 0))
      return std::nullopt;
  }
  auto arrays = ArraysOf(known, finder);
  if (!arrays) return std::nullopt;
  UnaryRequest request;
  request.operation = known.operation;
  request.view = std::move(*view);
  request.view.header = std::string();
  request.options = known.options;
  request.options.residents = *std::move(arrays);
  return request;
}

void KnownRequests::Keep(ParseUnary* method, std::string header, const UnaryRequest& request) {
  const engine::JobOptions& options = request.options;
  const bool in_region = std::any_of(options.regions.begin(), options.regions.end(),
                                     [](const engine::RegionPart& part) { return static_cast<bool>(part); });
  if (header.size() > kLongestHeader || options.store || options.result_region || in_region) return;
  Known known{method, std::move(header), request.operation, options, {}};
  for (const engine::ArrayUse& array : options.residents)
    known.arrays.push_back(array ? array->id() : std::string());
  known.options.residents.clear();
  known.options.regions.clear();
  known_[PlaceOf(known.header)] = std::move(known);
}

}  // namespace tilewire::rpc

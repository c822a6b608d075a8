#include "server/rpc/calls/known_requests.h"

#include <utility>

namespace tilewire::rpc {

UnaryRequest KnownRequests::Known::With(wire::UnaryView view) const {
  UnaryRequest request;
  request.operation = operation;
  request.view = std::move(view);
  request.view.header = std::string();
  request.options = options;
  return request;
}

KnownRequests& KnownRequests::OfThisThread() {
  thread_local KnownRequests known;
  return known;
}

const KnownRequests::Known* KnownRequests::Find(ParseUnary* method, const wire::UnaryView& view) const {
  if (view.header.size() > kLongestHeader) return nullptr;
  const Known& known = known_[PlaceOf(view.header)];
  if (known.method != method || known.header != view.header) return nullptr;
  const auto operands = known.operation->operands();
  if (operands.size() != view.operands.size()) return nullptr;
  for (size_t i = 0; i < operands.size(); ++i)
    if (view.operands[i].data_bytes != static_cast<uint64_t>(operands[i].bytes())) return nullptr;
  return &known;
}

void KnownRequests::Keep(ParseUnary* method, std::string header, const UnaryRequest& request) {
  const engine::JobOptions& options = request.options;
  if (header.size() > kLongestHeader || options.store || options.result_region) return;
  for (const auto& array : options.residents)
    if (array) return;
  for (const auto& part : options.regions)
    if (part) return;
  Known& known = known_[PlaceOf(header)];
  known = {method, std::move(header), request.operation, options};
  known.options.residents.clear();
  known.options.regions.clear();
}

}  // namespace tilewire::rpc

// Requests that were taken apart before. Who calls again and again asks the same of other bytes: what the
// rest of his message says, a few dozen bytes, need not be parsed, checked and planned anew.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/calls/unary_request.h"

namespace tilewire::rpc {

/// A few of those that a thread met last; used by that thread alone. Of arrays that they refer to it knows
/// the ids: what these mean depends on who asks, and when. None that refers to a region or stores its
/// results.
class KnownRequests {
 public:
  static KnownRequests& OfThisThread();

  /// The request with that view, which is then taken; nothing where it is not known, or where anything about
  /// it may be wrong.
  std::optional<UnaryRequest> Find(ParseUnary* method, wire::UnaryView* view, Finder* finder) const;
  /// No-op where it is none that may be kept. `header`: of the request.
  void Keep(ParseUnary* method, std::string header, const UnaryRequest& request);

 private:
  static constexpr size_t kKnown = 16, kLongestHeader = 512;
  struct Known {
    ParseUnary* method = nullptr;
    std::string header;  ///< the message without its operands' bytes
    engine::OperationPtr operation;
    engine::JobOptions options;
    std::vector<std::string> arrays;  ///< [operand]: its id, empty where it is sent
  };

  /// Where one with that header is, if anywhere.
  static size_t PlaceOf(std::string_view header) { return std::hash<std::string_view>()(header) % kKnown; }
  /// The arrays, as this caller may use them now.
  static std::optional<std::vector<engine::ArrayUse>> ArraysOf(const Known& known, Finder* finder);

  std::array<Known, kKnown> known_;
};

}  // namespace tilewire::rpc

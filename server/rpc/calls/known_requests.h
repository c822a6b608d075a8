// Requests that were taken apart before. Who calls again and again asks the same of other bytes: what the
// rest of his message says, a few dozen bytes, need not be parsed, checked and planned anew.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "server/rpc/calls/unary_request.h"

namespace tilewire::rpc {

/// A few of those that a thread met last; used by that thread alone. None that refers to an array or a
/// region, or stores its results: what these mean depends on who asks, and when.
class KnownRequests {
 public:
  struct Known {
    ParseUnary* method = nullptr;
    std::string header;  ///< the message without its operands' bytes
    engine::OperationPtr operation;
    engine::JobOptions options;

    UnaryRequest With(wire::UnaryView view) const;
  };

  static KnownRequests& OfThisThread();

  /// Null where it is not known, or where its operands have not the bytes that they are to have.
  const Known* Find(ParseUnary* method, const wire::UnaryView& view) const;
  /// No-op where it is none that may be kept. `header`: of the request.
  void Keep(ParseUnary* method, std::string header, const UnaryRequest& request);

 private:
  static constexpr size_t kKnown = 16, kLongestHeader = 512;

  /// Where one with that header is, if anywhere.
  static size_t PlaceOf(std::string_view header) { return std::hash<std::string_view>()(header) % kKnown; }

  std::array<Known, kKnown> known_;
};

}  // namespace tilewire::rpc

// What a refusal `BUSY` says that concerns more than the call that is refused.
#pragma once

#include <string_view>

namespace tilewire {

/// ErrorInfo's field where the server is behind with unary calls, small ones or larger. Until the pushback is
/// over a client that sends more of them makes it slower for everybody.
inline constexpr std::string_view kSmallCallsWait = "wait of small calls",
                                  kBulkCallsWait = "wait of bulk calls";

}  // namespace tilewire

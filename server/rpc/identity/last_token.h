// Tokens by which a thread knew its last callers. No gRPC here.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {

/// Who comes again with the same token is known by a comparison, instead of being looked up and named anew:
/// callers send calls by the thousand. Has no secret: that is compared where the file's reading keeps it, and
/// goes with it. Thread-compatible.
class LastToken {
 public:
  /// Identity::Text() of whom `authorization`, scheme and token, names, if Set() got just that last, of the
  /// same reading of the file, and it is not over. Null: nobody knows yet. `now` is asked for tokens that
  /// expire.
  const std::string* Names(const Tokens& tokens, std::string_view authorization, WallClock now) const {
    if (!authorization.starts_with(begin_)) return nullptr;
    return tokens.Is(known_, authorization.substr(begin_.size()), now) ? &identity_ : nullptr;
  }
  /// `authorization` was found right just now, and names `identity`.
  void Set(const Tokens& tokens, std::string_view authorization, std::string identity);

 private:
  Tokens::Known known_;
  std::string begin_;  ///< up to the secret
  std::string identity_;
};

/// Those of one thread, by the callers' names.
class LastTokens {
 public:
  LastToken& Of(std::string_view authorization) {
    const std::string_view name = authorization.substr(0, authorization.find('.'));
    return last_[std::hash<std::string_view>()(name) % last_.size()];
  }

 private:
  std::array<LastToken, 64> last_;
};

}  // namespace tilewire::rpc

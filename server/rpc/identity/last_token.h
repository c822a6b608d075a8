// A token by which a thread knew a caller. No gRPC here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {

/// Who comes again with the same token is known by one comparison, instead of being looked up and named anew:
/// callers send calls by the thousand. Of one thread. Holds one secret, which is wiped when another takes its
/// place and in the end; one of a file that was read anew since then says nothing any more.
class LastToken {
 public:
  using WallClock = WallTime (*)();

  LastToken() = default;
  ~LastToken();
  LastToken(const LastToken&) = delete;
  LastToken& operator=(const LastToken&) = delete;

  /// Identity::Text() of whom `authorization`, scheme and token, names, if Set() got just that last, of the
  /// same reading of the file, and it is not over. Null: nobody knows yet. `now` is asked for tokens that
  /// expire.
  const std::string* Names(const Tokens& tokens, std::string_view authorization, WallClock now) const {
    if (tokens.reading() != reading_ || !SameSecret(authorization, authorization_)) return nullptr;
    return until_ == WallTime::max() || now() < until_ ? &identity_ : nullptr;
  }
  /// `authorization` was found right just now, and names `identity`.
  void Set(const Tokens& tokens, std::string_view authorization, std::string identity);

 private:
  void Wipe();

  uint64_t reading_ = 0;  ///< of no file
  std::string authorization_, identity_;
  WallTime until_;
};

}  // namespace tilewire::rpc

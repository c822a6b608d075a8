#include "server/rpc/identity/last_token.h"

#include <utility>

namespace tilewire::rpc {

void LastToken::Set(const Tokens& tokens, std::string_view authorization, std::string identity) {
  known_ = {};  // until all of it is there
  const size_t token = authorization.find(' ') + 1;
  begin_ = authorization.substr(0, authorization.find('.', token) + 1);
  identity_ = std::move(identity);
  known_ = tokens.Remember(authorization.substr(token));
}

}  // namespace tilewire::rpc

#include "server/rpc/identity/last_token.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

namespace tilewire::rpc {

LastToken::~LastToken() {
  Wipe();
}

void LastToken::Wipe() {
  OPENSSL_cleanse(authorization_.data(), authorization_.size());
}

void LastToken::Set(const Tokens& tokens, std::string_view authorization, std::string identity) {
  Wipe();
  reading_ = tokens.reading();
  authorization_ = authorization;
  identity_ = std::move(identity);
  until_ =
      tokens.GoodUntil(authorization.substr(std::min(authorization.find(' '), authorization.size() - 1) + 1));
}

}  // namespace tilewire::rpc

// Flags that leave the server a choice until they are given.
#pragma once

#include <string_view>
#include <utility>

#include "server/ops/flags.h"

namespace tilewire::ops {

/// The same flag; once it was given, `choice` is off.
inline Flag GivenTurnsOff(bool Config::*choice, Flag flag) {
  flag.store = [choice, store = std::move(flag.store)](Config* config, std::string_view text) {
    config->*choice = false;
    return store(config, text);
  };
  return flag;
}

}  // namespace tilewire::ops

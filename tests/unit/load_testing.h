// What tests of the load test's loops share.
#pragma once

#include "client/load/generator.h"

namespace tilewire::load {

/// A load of one operation; the test says how long it goes on.
inline LoadOptions Options(uint32_t callers) {
  LoadOptions options;
  options.callers = callers;
  options.weights = {1};
  return options;
}

/// What a good call ends with.
inline Answer Right() {
  return {.right = true, .bytes = 8};
}

}  // namespace tilewire::load

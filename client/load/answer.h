// One call of the load: what is asked, and what came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "client/cpp/client.h"

namespace tilewire::load {

/// Which call to make.
struct Request {
  uint32_t operation = 0;  ///< of the scenario
  uint32_t input = 0;      ///< which of the operation's inputs
  uint32_t caller = 0;     ///< who calls
  bool trace = false;      ///< keep the spans
};

/// How it ended.
struct Answer {
  Status status;                       ///< of the call
  bool right = false;                  ///< where it is OK: the bits are
  uint64_t bytes = 0;                  ///< operands and result
  uint64_t resident_bytes = 0;         ///< of these, what was not sent because the server has it
  uint64_t region_bytes = 0;           ///< of these, what went through shared memory
  bool lost = false;                   ///< the server has lost what all calls of the run depend on
  std::optional<client::Reply> reply;  ///< where it is OK; absent where nothing is told about the call
};

/// Makes a call and waits for its end; a stop request ends it early. Thread-safe.
using Call = std::function<Answer(const Request&, const std::stop_token&)>;

}  // namespace tilewire::load

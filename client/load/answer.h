// One call of the load: what is asked, and what came of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "client/cpp/client.h"

namespace tilewire::load {

using LoadClock = std::chrono::steady_clock;

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
  bool right = false;                  ///< where it is OK and has no `check`: the bits are
  uint64_t bytes = 0;                  ///< operands and result
  uint64_t resident_bytes = 0;         ///< of these, what was not sent because the server has it
  uint64_t region_bytes = 0;           ///< of these, what went through shared memory
  bool lost = false;                   ///< the server has lost what all calls of the run depend on
  std::optional<client::Reply> reply;  ///< where it is OK; absent where nothing is told about the call
  /// When the call was made and when all of its answer was with the caller; making data, waiting for a place
  /// and checking lie outside. Zero where the call does not say: whoever called takes them around it.
  LoadClock::time_point began{}, ended{};
  /// Whether the bits are right: to be called once, by any thread, in time that is not the call's. It holds
  /// the place where the result lies; who drops it frees that.
  std::function<bool()> check;
  double held_up_seconds = 0;  ///< outside of the call, on the caller's thread: waiting for a place, checking

  /// Checks what is still to be checked, and frees the place.
  void Settle() {
    if (check) right = check();
    check = nullptr;
  }
  /// Fills in when the call began and ended where it does not say, for who called it at `called`.
  void TimesUnlessTold(LoadClock::time_point called) {
    if (began == LoadClock::time_point()) began = called;
    if (ended == LoadClock::time_point()) ended = LoadClock::now();
  }
  double seconds() const { return std::chrono::duration<double>(ended - began).count(); }
};

/// Makes a call and waits for its end; a stop request ends it early. Thread-safe. It bounds how many answers
/// wait for their check by itself.
using Call = std::function<Answer(const Request&, const std::stop_token&)>;

}  // namespace tilewire::load

// Operands that the server keeps for the length of a run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stop_token>
#include <tuple>
#include <vector>

#include "client/load/inputs.h"
#include "client/load/scenario.h"

namespace tilewire::load {

/// Arrays at a server, stored before a run and deleted after it. What Find() gives is immutable once they are
/// stored, so it may be called from any thread, also while Forget() runs; the rest is for one thread.
class Residents {
 public:
  Residents() = default;
  Residents(const Residents&) = delete;
  Residents& operator=(const Residents&) = delete;

  /// Stores every operand that an operation keeps at the server, of all inputs, for `seconds` (0: the
  /// server's default). The errors of Client::Put, with the operation's name; what was stored so far goes
  /// with Forget().
  Status Store(client::Client* client, std::span<const OperationSpec> operations, const Inputs& inputs,
               double seconds, const std::stop_token& stop);

  /// An operand of an input; null where it is sent with the call.
  const client::ArraySource* Find(uint32_t operation, uint32_t input, uint32_t operand) const;

  /// Deletes the arrays; those that are gone already do not count. How many stay because the server did not
  /// answer: after the first such one no other is tried, so that this takes some two seconds at most.
  size_t Forget();

 private:
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, client::ArraySource> sources_;
  std::vector<client::OwnedArray> owned_;
};

}  // namespace tilewire::load

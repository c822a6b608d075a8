// Operands and results in memory that is shared with the server, for the length of a run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stop_token>
#include <tuple>
#include <vector>

#include "client/load/inputs.h"
#include "client/load/result_buffers.h"
#include "client/load/scenario.h"

namespace tilewire::load {

/// One region an operation: the operands of all inputs, and places for results. What the
/// const methods give is immutable once Share() is done, so they may be called from any thread, also while
/// Forget() runs; the memory stays as long as this object.
class SharedArrays {
 public:
  SharedArrays() = default;
  SharedArrays(const SharedArrays&) = delete;
  SharedArrays& operator=(const SharedArrays&) = delete;

  /// Makes the regions of all operations whose access is one, with `results` places each, an entry an
  /// operation, and fills them with all inputs. The errors of Client::Share, with the operation's name; what
  /// was shared so far goes with Forget().
  Status Share(client::Client* client, std::span<const OperationSpec> operations, const Inputs& inputs,
               std::span<const uint32_t> results, const std::stop_token& stop);

  /// An operand of an input; null where it is not in shared memory.
  const client::ArraySource* Find(uint32_t operation, uint32_t input, uint32_t operand) const;
  /// The places for results of an operation; none where they come over the wire.
  std::vector<ResultPlace> Results(uint32_t operation) const;

  /// Unregisters the regions, as Residents::Forget.
  size_t Forget();

 private:
  std::vector<client::SharedRegion> regions_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, client::ArraySource> sources_;
  std::map<uint32_t, std::vector<ResultPlace>> results_;  ///< by operation
};

}  // namespace tilewire::load

// Operands and results in memory that is shared with the server, for the length of a run.
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

/// One region an operation: the operands of all inputs, and a place for the results of each caller. What the
/// const methods give is immutable once Share() is done, so they may be called from any thread, also while
/// Forget() runs; the memory stays as long as this object.
class SharedArrays {
 public:
  /// Where a caller's results go.
  struct ResultPlace {
    uint8_t* data = nullptr;  ///< null: it comes over the wire
    client::RegionPlace place;
  };

  SharedArrays() = default;
  SharedArrays(const SharedArrays&) = delete;
  SharedArrays& operator=(const SharedArrays&) = delete;

  /// Makes the regions of all operations whose access is one, and fills them with all `count` inputs. The
  /// errors of Client::Share, with the operation's name; what was shared so far goes with Forget().
  Status Share(client::Client* client, std::span<const OperationSpec> operations, const Inputs& inputs,
               uint32_t count, uint32_t callers, const std::stop_token& stop);

  /// An operand of an input; null where it is not in shared memory.
  const client::ArraySource* Find(uint32_t operation, uint32_t input, uint32_t operand) const;
  ResultPlace Result(uint32_t operation, uint32_t caller) const;

  /// Unregisters the regions, as Residents::Forget.
  size_t Forget();

 private:
  struct Results {
    size_t region;    ///< of regions_
    uint64_t offset;  ///< of the first caller's
    uint64_t step;
  };
  std::vector<client::SharedRegion> regions_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, client::ArraySource> sources_;
  std::map<uint32_t, Results> results_;  ///< by operation
};

}  // namespace tilewire::load

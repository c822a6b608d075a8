// Calls to a real server, every answer compared with the right one.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/load/answer.h"
#include "client/load/inputs.h"
#include "client/load/residents.h"
#include "client/load/scenario.h"
#include "client/load/shared_arrays.h"

namespace tilewire::load {

/// What a study may ask of the server for one call, instead of its own choice.
struct Tuning {
  uint64_t block_bytes = 0;  ///< 0: the server's choice
  uint32_t lanes = 0;        ///< 0: likewise
  bool sequential = false;   ///< no overlap of copies and kernels
  uint32_t connections = 0;  ///< 0: as the operation says
};

/// A server with the operations and inputs of a load. Thread-safe. What it was made from outlives it, and it
/// outlives its calls.
class Service {
 public:
  struct Options {
    std::string address;
    uint32_t channels = 1;  ///< connections that callers share for unary calls, caller by caller
    std::chrono::milliseconds timeout{30'000};
  };
  Service(const Options& options, std::vector<OperationSpec> operations, Inputs inputs);

  client::Client& client() { return clients_.front(); }
  /// Connects, stores the operands that operations keep at the server and shares the memory of others, before
  /// the first call; see Residents and SharedArrays. One thread.
  Status Prepare(const Scenario& scenario, double seconds, const std::stop_token& stop);
  /// Undoes that, after the last call that matters; how many arrays and regions stay because the server does
  /// not answer. One thread.
  size_t Forget();
  /// One call, not retried: a load test shows errors and does not hide them.
  Answer Make(const Request& request, const Tuning& tuning, const std::stop_token& stop);

 private:
  std::vector<client::ArraySource> OperandsOf(const Request& request) const;

  const Options options_;
  const std::vector<OperationSpec> operations_;
  const Inputs inputs_;
  std::vector<client::Client> clients_;
  Residents residents_;
  SharedArrays shared_;
};

}  // namespace tilewire::load

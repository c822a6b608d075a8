// Calls to a real server, every answer compared with the right one.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/load/answer.h"
#include "client/load/inputs.h"
#include "client/load/residents.h"
#include "client/load/result_buffers.h"
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

/// Results of at most so many bytes are checked by the caller itself: less work than waking another thread.
inline constexpr uint64_t kCheckedByCaller = 64 << 10;

/// A server with the operations and inputs of a load. Thread-safe. What it was made from outlives it, and it
/// outlives its calls and their checks.
class Service {
 public:
  struct Options {
    std::string address;
    client::ConnectOptions connect = {};
    uint32_t channels = 1;  ///< connections that callers share for unary calls, caller by caller
    std::chrono::milliseconds timeout{30'000};
    uint32_t callers = 1;   ///< calls under way at most; each has a number below this
    uint32_t checkers = 0;  ///< threads that run checks: so many results may wait beside those of the callers
  };
  Service(const Options& options, std::vector<OperationSpec> operations,
          std::shared_ptr<const Inputs> inputs);

  client::Client& client() { return clients_.front(); }
  /// Before the first call: connects, stores the operands that operations keep at the server, shares the
  /// memory of others, and makes room for results; see Residents, SharedArrays and ResultBuffers. One thread.
  Status Prepare(double seconds, const std::stop_token& stop);
  /// Undoes that, after the last call that matters; how many arrays and regions stay because the server does
  /// not answer. One thread.
  size_t Forget();
  /// One call, not retried: a load test shows errors and does not hide them. Its result lands in a place of
  /// its own, and is compared there when the answer's check is called.
  Answer Make(const Request& request, const Tuning& tuning, const std::stop_token& stop);

 private:
  uint32_t PlacesOf(const OperationSpec& spec) const;
  void MakeRoom();
  std::vector<client::ArraySource> OperandsOf(const Request& request) const;
  client::CallOptions CallOptionsOf(const Request& request, const Tuning& tuning,
                                    const std::stop_token& stop) const;

  const Options options_;
  const std::vector<OperationSpec> operations_;
  const std::shared_ptr<const Inputs> inputs_;
  std::vector<client::Client> clients_;
  Residents residents_;
  SharedArrays shared_;
  std::vector<std::unique_ptr<ResultBuffers>> buffers_;  ///< by operation
};

}  // namespace tilewire::load

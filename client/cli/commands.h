// The commands of `tilewire`. Each returns the program's exit code and prints its own errors.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/cli/values.h"
#include "client/cpp/client.h"
#include "client/cpp/operations.h"

namespace tilewire::cli {

/// Options before the command, the same for all.
struct Globals {
  std::string server = "localhost:50051";
  bool json = false;
  bool timing = false;
  std::optional<std::chrono::milliseconds> timeout;
  uint32_t connections = 0;  ///< 0: as many as the call is worth
  uint64_t block_bytes = 0;  ///< of the server's blocks; 0: its choice
  uint32_t lanes = 0;        ///< at most; 0: all
  bool sequential = false;
  bool via_region = false;      ///< operands that are files go through shared memory
  std::string trace, timeline;  ///< files for the trace and its picture; empty: none
  client::ConnectOptions connect;
  std::stop_token stop;

  client::CallOptions call_options() const;
};

/// PrintError() for what a call gave, in the words of who ran the program: an interrupted call says so, and
/// one that ran out of time names --timeout.
int PrintCallError(const Globals& globals, const Status& status, int exit_code);

/// What an operation's command asks for.
struct OperationArguments {
  const client::OperationInfo* operation;
  std::vector<std::string> operands;  ///< .npy files or "array:ID"
  Attributes attributes;
  std::string out;                            ///< file that the result goes to; empty: it is printed,
  std::optional<client::StoreOptions> store;  ///< or stays at the server
  std::optional<double> derived_by;           ///< OperationInfo::derived_by
  std::vector<Limit> limits;                  ///< --fail-above
};

struct PutArguments {
  std::string in;  ///< .npy file
  client::StoreOptions store;
};

struct GetArguments {
  std::string id, out;  ///< "ID" or "array:ID"; .npy file
};

/// What `info --kernels` asks for.
struct KernelsArguments {
  std::string operation;  ///< its command; empty: the catalogue
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int32_t> axes;
};

/// kExitAbove where a value is above its limit.
int RunOperation(const Globals& globals, const OperationArguments& arguments);
/// Prints the id, and with it the array stays.
int RunPut(const Globals& globals, const PutArguments& arguments);
int RunGet(const Globals& globals, const GetArguments& arguments);
/// All arrays of the caller, oldest first.
int RunList(const Globals& globals);
/// Each is tried, whatever became of those before.
int RunRemove(const Globals& globals, const std::vector<std::string>& arrays);
int RunInfo(const Globals& globals);
int RunKernels(const Globals& globals, const KernelsArguments& arguments);
int RunPing(const Globals& globals, int count);
/// The published cases of every operation, over unary calls.
int RunSelftest(const Globals& globals);

}  // namespace tilewire::cli

// The Tilewire client: array kernels of a `tilewired` server, called with arrays of any size.
//
//   auto client = Client::Connect("localhost:50051");
//   auto reply = client.Rmse(ArraySource::FromMemory(spec, a), ArraySource::FromMemory(spec, b));
//   if (reply) std::cout << reply->values[0];
//
// Small calls go as one message (unary), large ones are streamed in chunks that reference the caller's memory
// or the mapped file: array bytes are copied nowhere in this library but where a Fortran order file is turned
// around. Arrays that are used more than once stay at the server:
//
//   auto reference = client.Put(ArraySource::FromMemory(spec, b));
//   auto reply = client.Rmse(ArraySource::FromMemory(spec, a), reference->array.source());
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/arrays.h"
#include "client/cpp/operation.h"
#include "client/cpp/region.h"
#include "client/cpp/retry.h"
#include "client/cpp/server_info.h"
#include "client/cpp/source.h"
#include "client/cpp/spans.h"
#include "kernels/array/shape.h"
#include "kernels/array/status.h"

namespace tilewire::client {

/// Where the time of a call went on the server, microseconds; stages that could not be observed are absent.
/// See tilewire.v1.Timing for each field.
struct Timing {
  std::optional<double> queue_us, receive_us, stage_us, h2d_us, kernel_us, d2h_us, send_us;
  std::optional<double> other_us;  ///< in none of these stages: wall_us less the union of all their spans
  double wall_us = 0;
  uint64_t bytes_in = 0, bytes_out = 0, blocks = 0, ranges = 0;
  uint32_t lanes = 0, streams = 0;
  std::string device;
  std::optional<double> overlap;
  std::string bottleneck;
  std::optional<double> bottleneck_share;
  /// Of the connection when it came; and how much of receive_us windows and distance explain, 0 to 1.
  std::optional<double> round_trip_us, window_share;
  uint64_t region_bytes_in = 0, region_bytes_out = 0;  ///< read from and written to regions
  std::optional<uint64_t> bytes_copied;                ///< array bytes that the server's CPU copied
  std::vector<ServerSpan> spans;                       ///< with CallOptions::trace
  uint64_t spans_dropped = 0;                          ///< of those, beyond 20,000
};

/// What a successful call tells beside the result's bytes.
struct Reply {
  ArraySpec spec;                ///< of the result; of several the first one's
  std::vector<ArraySpec> specs;  ///< of all results, in the operation's order
  std::string numeric_version;   ///< "rmse.1"
  Timing timing;                 ///< as the server saw it
  double client_wall_us = 0;     ///< the whole call as the caller saw it, retries included
  int attempts = 1;              ///< 2 or more when it was retried
  bool streamed = false;         ///< Execute, not a unary call
  /// To the server and back, where that decided on connections (CallOptions::connections 0); 0: it did not.
  double round_trip_us = 0;
  std::string array;  ///< id of the result where it was stored instead of sent; of several the first
  std::vector<std::string> arrays;  ///< ids of all of them; empty where nothing was stored
  std::optional<Trace> trace;       ///< with CallOptions::trace; the server's spans are in `timing`
};

/// Reply of an RMSE call: `values` in row-major order of `reply.spec.shape`.
struct RmseReply {
  std::vector<double> values;
  Reply reply;
};

/// Reply of a call whose result stays at the server.
struct StoredReply {
  OwnedArray array;
  std::vector<OwnedArray> more;  ///< further results, where the operation has several
  Reply reply;
};

/// How far a streamed call is, bytes of array data.
struct Progress {
  uint64_t sent = 0, send_total = 0, received = 0, receive_total = 0;
};

/// How operands travel. kAuto: unary where what crosses the wire of operands and result has at most 1 MiB
/// together, else streamed. Resident operands, regions and stored results do not cross it. Where the result's
/// size is not known beforehand it goes by what the server says.
enum class CallForm : uint8_t { kAuto, kUnary, kStream };

/// Options of one call. Everything may stay as it is.
struct CallOptions {
  /// For the whole call, retries included: DEADLINE_EXCEEDED when it passes. None: wait for ever.
  std::optional<std::chrono::milliseconds> timeout;
  /// A stop request ends the call with CANCELLED. May come from any thread (not from a signal handler).
  std::stop_token stop;
  /// Called after each message of a streamed call, by one thread at a time; must be quick.
  std::function<void(const Progress&)> progress;
  CallForm form = CallForm::kAuto;
  /// Attempts in all, for BUSY servers and for servers that could not be reached; pushback of the server is
  /// honoured.
  int max_attempts = kDefaultAttempts;
  /// Sent as `x-request-id` (1 to 128 visible ASCII characters); empty: the server makes one up.
  std::string request_id;
  /// Payload of a message, 4 KiB to 4 MiB. 1 MiB is best.
  uint64_t message_bytes = 1 << 20;
  /// Connections that carry a streamed call, at most; 0: one for each 32 MiB, up to 8, and up to half of this
  /// machine's cores where the server is less than 2 ms away, else one for each 8 MiB, up to 8 (asked for
  /// once, by two health checks, when a call of 16 MiB or more comes). The server may grant fewer.
  uint32_t connections = 0;
  /// The sink may be called by several threads at once, for different bytes.
  bool concurrent_sink = false;
  /// Keep every span of the call, at the server and here: Timing::spans and Reply::trace. Off, it costs
  /// nothing.
  bool trace = false;
  // For study; results are the same.
  uint64_t block_bytes = 0;  ///< of the server's blocks, 4 KiB to 256 MiB, a multiple of 4 KiB; 0: its choice
  uint32_t lanes = 0;        ///< of the device, at most; 0: all
  bool sequential = false;   ///< copies in, then kernels, then copies out, on one lane
};

/// Takes result bytes: `bytes` at `offset` of the result, each byte once. With one connection offsets ascend
/// without gaps and it runs on the calling thread; with several, pieces come in any order and on other
/// threads, one at a time unless CallOptions::concurrent_sink. An error ends the call with it.
using Sink = std::function<Status(uint64_t offset, std::span<const uint8_t> bytes)>;
/// The same for operations with several results: `offset` is one of result number `result`, from 0. Of each
/// result pieces come as to a Sink; which result's comes next is open.
using ResultSink = std::function<Status(size_t result, uint64_t offset, std::span<const uint8_t> bytes)>;

/// TLS of a connection; all in PEM. The server's certificate must be for the host of the address. Unix
/// sockets are in clear all the same.
struct TlsOptions {
  std::string ca;                ///< authorities that may vouch for the server; empty: those of this machine
  std::string certificate, key;  ///< what the client shows where the server asks; empty: nothing
};

/// How to connect.
struct ConnectOptions {
  /// A TCP connection is closed when its peer takes nothing of what was sent for this long (a machine that
  /// lost its power, a stopped process). Until then a call whose write is stuck cannot end, not even by its
  /// deadline or a stop request, because gRPC still holds its operands. At least 1 ms; a server gives up on a
  /// stalled stream after 30 s too.
  std::chrono::milliseconds dead_peer_timeout{30'000};
  /// Metadata of every call, such as the name that a server with --identity-header goes by: keys in lower
  /// case, values of visible ASCII characters.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  /// TLS; nothing: clear text.
  std::optional<TlsOptions> tls = {};
  /// NAME.SECRET of a server with --tokens, sent with every call; empty: none. In clear it is sent to this
  /// host alone (unix sockets, localhost, 127.0.0.0/8, [::1]): calls to others are INVALID_ARGUMENT and send
  /// nothing, and further streams keep to the address that was connected to. `insecure` lifts that.
  std::string token = {};
  bool insecure = false;
  /// Waits before the next attempt of a call: so long, or until a stop is requested. Empty: the calling
  /// thread sleeps. For callers that have something better to do meanwhile, and for tests.
  std::function<void(std::chrono::milliseconds, const std::stop_token&)> wait = {};
};

/// A connection to one server. Thread-safe: any number of calls at a time; each streamed call has a
/// connection to itself, kept for the next one. Movable; destroy it after its calls returned.
///
/// Every call returns a Status with the server's code, reason, field, value and allowed (see
/// kernels/array/status.h), or DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE, or INTERNAL `BAD_REPLY` where the
/// server broke the contract. When a call returns, successful or not, nothing refers to its operands any
/// more.
class Client {
 public:
  /// `address`: "host:port" or "unix:PATH". Connects with the first call. HTTP proxies of the environment are
  /// not used.
  static Client Connect(const std::string& address, const ConnectOptions& options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// RMSE of `a` and `b`.
  Result<RmseReply> Rmse(const ArraySource& a, const ArraySource& b, const RmseOp& op = {},
                         const CallOptions& options = {});
  /// Permutes the axes of `input`; the result goes to `sink`. Fortran order sources cost nothing extra.
  Result<Reply> Transpose(const ArraySource& input, const TransposeOp& op, const Sink& sink,
                          const CallOptions& options = {});
  /// Gaussian pdf of every element of `input`; the result goes to `sink`, for large arrays while the input is
  /// still being sent.
  Result<Reply> GaussianPdf(const ArraySource& input, const GaussianOp& op, const Sink& sink,
                            const CallOptions& options = {});
  /// Any operation that has one result: operands in order, the result's bytes to `sink`.
  Result<Reply> Execute(const Operation& operation, std::span<const ArraySource> operands, const Sink& sink,
                        const CallOptions& options = {});
  /// Any operation.
  Result<Reply> Execute(const Operation& operation, std::span<const ArraySource> operands,
                        const ResultSink& sink, const CallOptions& options = {});

  /// Any operation, its results kept at the server, where they can be operands at once.
  Result<StoredReply> Store(const Operation& operation, std::span<const ArraySource> operands,
                            const StoreOptions& store = {}, const CallOptions& options = {});

  /// Makes memory that this process shares with the server, which must be on this host and allow it, and
  /// registers it: see SharedRegion. Not retried. UNIMPLEMENTED `REGIONS_OFF`: it does not allow it;
  /// NOT_FOUND `REGION`: it is on another host; PERMISSION_DENIED `REGION_ACCESS`: it runs as another user;
  /// RESOURCE_EXHAUSTED `LIMIT`: more than it allows; `BUSY`: no room for now. `options`: timeout, stop and
  /// request_id.
  Result<SharedRegion> Share(uint64_t bytes, const RegionOptions& region = {},
                             const CallOptions& options = {});
  /// Registers memory of the server's device by handle: see DeviceRegion. Not retried. UNIMPLEMENTED
  /// `REGIONS_OFF`: the server does not allow it; INVALID_ARGUMENT `BAD_VALUE`: the handle of nothing, or
  /// more than its allocation has; FAILED_PRECONDITION `REGION_UNPINNABLE`: the server has no device, or its
  /// driver does not open it; RESOURCE_EXHAUSTED `BUSY`: too many regions. `options`: as for Share().
  Result<DeviceRegion> RegisterDevice(const DeviceMemory& memory, const DeviceRegionOptions& region = {},
                                      const CallOptions& options = {});
  /// Any operation, its result written to `place`, as many bytes as it has; several one after the other, each
  /// at a multiple of 256 bytes from there. Where the call fails what is there is undefined.
  Result<Reply> ExecuteInto(const Operation& operation, std::span<const ArraySource> operands,
                            const RegionPlace& place, const CallOptions& options = {});

  /// Sends an array, memory or a file, to stay at the server. RESOURCE_EXHAUSTED `LIMIT`: more than the
  /// server stores for one caller or for all; `BUSY`: no room for now.
  Result<StoredReply> Put(const ArraySource& source, const StoreOptions& store = {},
                          const CallOptions& options = {});
  /// Brings a resident array to `sink`; NOT_FOUND `ARRAY` where the caller has none of that id.
  Result<Reply> Get(const std::string& id, const Sink& sink, const CallOptions& options = {});
  /// The same; where `array` knows its dtype and shape, which handles' sources do, they need not be asked
  /// for.
  Result<Reply> Get(const ArraySource& array, const Sink& sink, const CallOptions& options = {});
  /// What the server knows of an array. `options`: timeout, stop, request_id and max_attempts.
  Result<ArrayInfo> Stat(const std::string& id, const CallOptions& options = {});
  /// The caller's arrays, oldest first, all of them. `options` as for Stat.
  Result<ArrayList> List(const CallOptions& options = {});
  /// Forgets an array; jobs that use it finish. Not retried. `options`: timeout, stop and request_id.
  Status Delete(const std::string& id, const CallOptions& options = {});

  /// What the server is; not retried. `options`: timeout, stop and request_id.
  Result<ServerInfo> Describe(const CallOptions& options = {});
  /// The kernels that `operation` launches on operands of these specs; nothing is computed. Not retried.
  /// `options` as for Describe.
  Result<ServerKernels> DescribeKernels(const Operation& operation, std::span<const ArraySpec> operands,
                                        const CallOptions& options = {});
  /// The server's catalogue: every operation over representative dtypes and shapes, and the teaching ladder.
  Result<ServerKernels> DescribeKernels(const CallOptions& options = {});
  /// Has the server measure what its machine can do at most, some 100 ms; `BUSY` while it does so for
  /// somebody else and for nine times as long after, which is waited for within `options.max_attempts`.
  /// `options` as for Describe.
  Result<ServerCeilings> MeasureCeilings(const CallOptions& options = {});
  /// One round trip to the health service (the server as a whole); not retried. The time it took, or
  /// UNAVAILABLE when the server does not serve. `options`: timeout and stop.
  Result<std::chrono::nanoseconds> Ping(const CallOptions& options = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewire::client

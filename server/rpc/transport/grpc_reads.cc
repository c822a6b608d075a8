#include "server/rpc/transport/grpc_reads.h"

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <dlfcn.h>
#include <grpc/slice.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/transport/streams_read.h"
#include "server/rpc/transport/unfinished_headers.h"

// As gRPC 1.51 declares them; what is in them is the library's.
struct grpc_chttp2_transport;
struct grpc_chttp2_stream;
struct grpc_endpoint;
class grpc_metadata_batch;

namespace grpc_core {

class HPackParser {
 public:
  enum class Boundary : uint8_t { None, EndOfHeaders, EndOfStream };
  enum class Priority : uint8_t { None, Included };
  struct LogInfo {
    uint32_t stream_id;
    enum Type : uint8_t { kHeaders, kTrailers, kDontKnow };
    Type type;
    bool is_client;
  };

  ~HPackParser();
  void BeginFrame(grpc_metadata_batch* into, uint32_t most_metadata, Boundary boundary, Priority priority,
                  LogInfo info);
};

class Executor {
 public:
  static bool IsThreadedDefault();
};

namespace chttp2 {

class FlowControlAction;

class TransportFlowControl {
 public:
  class IncomingUpdateContext {
   public:
    absl::Status RecvData(int64_t frame_bytes, absl::FunctionRef<absl::Status()> stream);
  };
};

}  // namespace chttp2
}  // namespace grpc_core

using grpc_core::HPackParser;
using grpc_core::chttp2::FlowControlAction;
using grpc_core::chttp2::TransportFlowControl;

absl::Status grpc_chttp2_header_parser_parse(void* parser, grpc_chttp2_transport* transport,
                                             grpc_chttp2_stream* stream, const grpc_slice& piece,
                                             int frame_ends);
void grpc_chttp2_act_on_flowctl_action(const grpc_core::chttp2::FlowControlAction& action,
                                       grpc_chttp2_transport* transport, grpc_chttp2_stream* stream);
void grpc_chttp2_add_ping_strike(grpc_chttp2_transport* transport);

namespace tilewire::rpc {
namespace {

using Destroy = void(HPackParser*);
using BeginFrame = void(HPackParser*, grpc_metadata_batch*, uint32_t, HPackParser::Boundary,
                        HPackParser::Priority, HPackParser::LogInfo);
using Parse = absl::Status(void*, grpc_chttp2_transport*, grpc_chttp2_stream*, const grpc_slice&, int);
using ReceiveData = absl::Status(TransportFlowControl::IncomingUpdateContext*, int64_t,
                                 absl::FunctionRef<absl::Status()>);
using ActOn = void(const FlowControlAction&, grpc_chttp2_transport*, grpc_chttp2_stream*);
using IsThreaded = bool();
using AddPingStrike = void(grpc_chttp2_transport*);
using EndpointOf = grpc_endpoint*(grpc_chttp2_transport*);
using PeerOfEndpoint = absl::string_view(grpc_endpoint*);

constexpr const char* kParse =
    "_Z31grpc_chttp2_header_parser_parsePvP21grpc_chttp2_transportP18grpc_chttp2_streamRK10grpc_slicei";

/// The next ones of those names, which are the library's.
struct Library {
  template <typename Function>
  static Function* Next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  }

  Destroy* const destroy = Next<Destroy>("_ZN9grpc_core11HPackParserD1Ev");
  BeginFrame* const begin_frame = Next<BeginFrame>(
      "_ZN9grpc_core11HPackParser10BeginFrameEP19grpc_metadata_batchjNS0_8BoundaryENS0_8PriorityENS0_"
      "7LogInfoE");
  Parse* const parse = Next<Parse>(kParse);
  ReceiveData* const receive_data = Next<ReceiveData>(
      "_ZN9grpc_"
      "core6chttp220TransportFlowControl21IncomingUpdateContext8RecvDataElN4absl7debian311FunctionRef"
      "IFNS4_6StatusEvEEE");
  ActOn* const act_on = Next<ActOn>(
      "_Z33grpc_chttp2_act_on_flowctl_actionRKN9grpc_core6chttp217FlowControlActionEP21grpc_chttp2_"
      "transportP18"
      "grpc_chttp2_stream");
  IsThreaded* const is_threaded = Next<IsThreaded>("_ZN9grpc_core8Executor17IsThreadedDefaultEv");
  AddPingStrike* const add_ping_strike =
      Next<AddPingStrike>("_Z27grpc_chttp2_add_ping_strikeP21grpc_chttp2_transport");
  EndpointOf* const endpoint_of = Next<EndpointOf>("_Z27grpc_transport_get_endpointP14grpc_transport");
  PeerOfEndpoint* const peer_of = Next<PeerOfEndpoint>("_Z22grpc_endpoint_get_peerP13grpc_endpoint");
  const bool is_seen =
      grpc::Version().starts_with("1.51.") && destroy != nullptr && begin_frame != nullptr &&
      parse != nullptr && receive_data != nullptr && act_on != nullptr && is_threaded != nullptr &&
      add_ping_strike != nullptr && endpoint_of != nullptr && peer_of != nullptr &&
      dlsym(RTLD_DEFAULT, kParse) == reinterpret_cast<void*>(&grpc_chttp2_header_parser_parse);
};

const Library& OfLibrary() {
  static const Library library;
  return library;
}

// For good: gRPC's threads may outlive any static object.
UnfinishedHeaders& Headers() {
  static auto* const headers = new UnfinishedHeaders;
  return *headers;
}
StreamsRead& Streams() {
  static auto* const streams = new StreamsRead;
  return *streams;
}

/// How far a parser lies behind the beginning of its transport; 0: none was seen yet.
std::atomic<ptrdiff_t> parser_at{0};
/// Of a frame of data whose beginning this thread has just read; whose that is it learns next.
constinit thread_local int64_t data_bytes = 0;

/// Pings too many of the transport that this thread has read last, in a row.
struct PingStrikes {
  const grpc_chttp2_transport* transport = nullptr;
  uint64_t ends = 0;  ///< of transports, until then
  int count = 0;
};
constinit thread_local PingStrikes strikes;
std::atomic<uint64_t> transport_ends{0};

std::atomic<uint64_t> refused_headers{0}, refused_streams{0};

absl::Status Refuse(ConnectionAccount* account, std::atomic<uint64_t>* count, const char* why) {
  if (account == nullptr || !account->end_told.exchange(true)) count->fetch_add(1, std::memory_order_relaxed);
  return absl::ResourceExhaustedError(why);
}

}  // namespace

bool SeesReads() {
  return OfLibrary().is_seen;
}

ReadsRefused RefusedReads() {
  return {.headers = refused_headers.load(std::memory_order_relaxed),
          .streams = refused_streams.load(std::memory_order_relaxed),
          .messages = RefusedMessages()};
}

}  // namespace tilewire::rpc

// What the library calls by these names is this.

HPackParser::~HPackParser() {
  tilewire::rpc::Headers().Forget(this);
  tilewire::rpc::Streams().Forget(this);
  tilewire::rpc::transport_ends.fetch_add(1, std::memory_order_relaxed);
  tilewire::rpc::OfLibrary().destroy(this);
}

void HPackParser::BeginFrame(grpc_metadata_batch* into, uint32_t most_metadata, Boundary boundary,
                             Priority priority, LogInfo info) {
  const auto& library = tilewire::rpc::OfLibrary();
  if (library.is_seen) {
    tilewire::rpc::Headers().BeginFrame(this, info.stream_id, boundary != Boundary::None);
    // Of what it skips gRPC does not know.
    if (auto* const account = tilewire::rpc::Streams().Known(this))
      account->begins_call =
          info.type == LogInfo::kDontKnow || (info.type == LogInfo::kHeaders && boundary != Boundary::None);
    // Who acknowledges no SETTINGS would else have 16 MiB.
    if (!info.is_client) most_metadata = std::min(most_metadata, tilewire::rpc::kMostMetadataBytes);
  }
  library.begin_frame(this, into, most_metadata, boundary, priority, info);
}

absl::Status grpc_chttp2_header_parser_parse(void* parser, grpc_chttp2_transport* transport,
                                             grpc_chttp2_stream* stream, const grpc_slice& piece,
                                             int frame_ends) {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  const auto& library = OfLibrary();
  if (library.is_seen) {
    const size_t bytes = GRPC_SLICE_LENGTH(piece);
    if (parser_at.load(std::memory_order_relaxed) == 0)
      parser_at = static_cast<const char*>(parser) - reinterpret_cast<const char*>(transport);
    ConnectionAccount* const account = Streams().Of(parser, [&] {
      return ReadAccounts::OfProcess().Find(std::string(library.peer_of(library.endpoint_of(transport))));
    });
    if (!Headers().Came(parser, bytes, frame_ends != 0))
      return Refuse(account, &refused_headers, "a header is too large, or comes in too many frames");
    if (account != nullptr) {
      account->Carry(bytes);
      if (frame_ends != 0 && account->begins_call && !account->BeginStream())
        return Refuse(account, &refused_streams, "too many calls of this client have come to nothing");
    }
  }
  return library.parse(parser, transport, stream, piece, frame_ends);
}

// gRPC closes a connection for the third. Those that were read with it are skipped: it would close it anew
// for each, at far more time and memory than a ping that is answered.
void grpc_chttp2_add_ping_strike(grpc_chttp2_transport* transport) {
  auto& strikes = tilewire::rpc::strikes;
  const uint64_t ends = tilewire::rpc::transport_ends.load(std::memory_order_relaxed);
  constexpr int kEnough = 4;
  if (strikes.transport != transport || strikes.ends != ends)
    strikes = {.transport = transport, .ends = ends};
  else if (strikes.count >= kEnough)
    return;
  ++strikes.count;
  tilewire::rpc::OfLibrary().add_ping_strike(transport);
}

// Asked for one thing alone: whether a thread that should return to its queue may leave what it does for a
// connection to a thread of gRPC's own. Who sends without an end would keep that one, and all others whose
// connections were left to it waiting; here he keeps one that is replaced.
bool grpc_core::Executor::IsThreadedDefault() {
  const auto& library = tilewire::rpc::OfLibrary();
  return !library.is_seen && library.is_threaded();
}

absl::Status TransportFlowControl::IncomingUpdateContext::RecvData(int64_t frame_bytes,
                                                                   absl::FunctionRef<absl::Status()> stream) {
  tilewire::rpc::data_bytes = frame_bytes;
  return tilewire::rpc::OfLibrary().receive_data(this, frame_bytes, stream);
}

// Follows each frame of data, those of streams that are over, too.
void grpc_chttp2_act_on_flowctl_action(const FlowControlAction& action, grpc_chttp2_transport* transport,
                                       grpc_chttp2_stream* stream) {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  const auto& library = OfLibrary();
  const auto bytes = static_cast<uint64_t>(std::exchange(data_bytes, 0));
  const ptrdiff_t at = parser_at.load(std::memory_order_relaxed);
  if (bytes > 0 && at != 0 && library.is_seen) {
    if (ConnectionAccount* const account = Streams().Known(reinterpret_cast<const char*>(transport) + at))
      account->Carry(bytes);
  }
  library.act_on(action, transport, stream);
}

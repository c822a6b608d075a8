// What gRPC 1.51 reads of messages, seen and bounded as grpc_reads.cc does with headers.
#include <absl/status/status.h>
#include <absl/strings/cord.h>
#include <absl/strings/string_view.h>
#include <dlfcn.h>
#include <grpc/slice.h>
#include <malloc.h>

#include <atomic>
#include <string>
#include <string_view>

#include "server/rpc/listener/peer.h"
#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/transport/grpc_reads.h"
#include "server/rpc/transport/messages_on_way.h"

// As gRPC 1.51 declares them; what is in them is the library's.
struct grpc_chttp2_transport;
struct grpc_endpoint;
struct grpc_chttp2_stream {
  ~grpc_chttp2_stream();
};

absl::Status grpc_chttp2_data_parser_parse(void* parser, grpc_chttp2_transport* transport,
                                           grpc_chttp2_stream* stream, const grpc_slice& piece,
                                           int frame_ends);

namespace tilewire::rpc {
namespace {

/// The next ones of those names, which are the library's.
struct MessageReading {
  using Parse = absl::Status(void*, grpc_chttp2_transport*, grpc_chttp2_stream*, const grpc_slice&, int);
  using Destroy = void(grpc_chttp2_stream*);
  using Cancel = void(grpc_chttp2_transport*, grpc_chttp2_stream*, absl::Status);
  using EndpointOf = grpc_endpoint*(grpc_chttp2_transport*);
  using PeerOf = absl::string_view(grpc_endpoint*);
  template <typename Function>
  static Function* Next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  }

  Parse* const parse = Next<Parse>(
      "_Z29grpc_chttp2_data_parser_parsePvP21grpc_chttp2_transportP18grpc_chttp2_streamRK10grpc_"
      "slicei");
  Destroy* const destroy = Next<Destroy>("_ZN18grpc_chttp2_streamD1Ev");
  Cancel* const cancel = Next<Cancel>(
      "_Z25grpc_chttp2_cancel_streamP21grpc_chttp2_transportP18grpc_chttp2_streamN4absl7debian"
      "36StatusE");
  EndpointOf* const endpoint_of = Next<EndpointOf>("_Z27grpc_transport_get_endpointP14grpc_transport");
  PeerOf* const peer_of = Next<PeerOf>("_Z22grpc_endpoint_get_peerP13grpc_endpoint");
  const bool is_seen = SeesReads() && parse != nullptr && destroy != nullptr && cancel != nullptr;

  static const MessageReading& OfLibrary() {
    static const MessageReading reading;
    return reading;
  }
};

/// For good: gRPC's threads may outlive any static object.
struct ProcessMessages {
  Allowance near{"messages on their way"};
  Allowance wide{"messages on their way from afar", "--distance-bytes"};
  MessagesOnWay on_way;
};
ProcessMessages& OfProcess() {
  static auto* const all = new ProcessMessages;
  return *all;
}

std::atomic<bool> are_limited{false};
std::atomic<uint64_t> refused_messages{0};

MessagesOnWay::Share ShareOfMessages(grpc_chttp2_transport* transport) {
  if (!are_limited) return {};  // servers that are not ours
  const auto& library = MessageReading::OfLibrary();
  const std::string peer(library.peer_of(library.endpoint_of(transport)));
  if (peer == "unix:") return {.allowance = &OfProcess().near, .name = PeerGroup(peer)};
  const auto account = ReadAccounts::OfProcess().Find(peer);
  if (account == nullptr) return {};  // of a client in this process
  return {.allowance = account->window > 0 ? &OfProcess().wide : &OfProcess().near, .name = PeerGroup(peer)};
}

/// gRPC 1.51 reads into blocks that begin with the count of who uses them; what is small has none.
MessagesOnWay::Block BlockOf(const grpc_slice& piece) {
  if (reinterpret_cast<uintptr_t>(piece.refcount) <= 1) return {};
  return {.at = piece.refcount, .bytes = static_cast<int64_t>(malloc_usable_size(piece.refcount))};
}

}  // namespace

void LimitMessagesOnWay(int64_t near_bytes, int64_t wide_bytes) {
  OfProcess().near.SetLimit(near_bytes);
  OfProcess().wide.SetLimit(wide_bytes);
  are_limited = true;
}

uint64_t RefusedMessages() {
  return refused_messages.load(std::memory_order_relaxed);
}

}  // namespace tilewire::rpc

// What the library calls by these names is this.

absl::Status grpc_chttp2_data_parser_parse(void* parser, grpc_chttp2_transport* transport,
                                           grpc_chttp2_stream* stream, const grpc_slice& piece,
                                           int frame_ends) {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  const auto& library = MessageReading::OfLibrary();
  if (library.is_seen) {
    const std::string_view bytes(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(piece)),
                                 GRPC_SLICE_LENGTH(piece));
    if (const auto status = OfProcess().on_way.Came(
            stream, bytes, [&] { return BlockOf(piece); }, [&] { return ShareOfMessages(transport); });
        !status.ok()) {
      refused_messages.fetch_add(1, std::memory_order_relaxed);
      // With a status of its own gRPC tells it the caller, and reads no more of the stream.
      auto error = absl::ResourceExhaustedError(std::string(status.message()));
      constexpr auto kStatus = "type.googleapis.com/grpc.status.int.grpc_status";
      error.SetPayload(kStatus, absl::Cord(std::to_string(static_cast<int>(error.code()))));
      library.cancel(transport, stream, error);
      return absl::OkStatus();
    }
  }
  return library.parse(parser, transport, stream, piece, frame_ends);
}

grpc_chttp2_stream::~grpc_chttp2_stream() {
  tilewire::rpc::OfProcess().on_way.Forget(this);
  tilewire::rpc::MessageReading::OfLibrary().destroy(this);
}

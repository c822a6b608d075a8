// What gRPC 1.51 reads of messages, seen and bounded as grpc_reads.cc does with headers.
#include <absl/status/status.h>
#include <absl/strings/cord.h>
#include <absl/strings/string_view.h>
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/rpc/listener/peer.h"
#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/transport/grpc_reads.h"
#include "server/rpc/transport/messages_on_way.h"
#include "server/rpc/transport/refused_calls.h"

// As gRPC 1.51 declares them; what is in them is the library's.
struct grpc_chttp2_transport;
struct grpc_endpoint;
struct grpc_stream_refcount;
struct grpc_call_stack;
struct grpc_call_element;
namespace grpc_core {
class Arena;
}
struct grpc_chttp2_stream {
  grpc_chttp2_stream(grpc_chttp2_transport* transport, grpc_stream_refcount* refcount,
                     const void* server_data, grpc_core::Arena* arena);
  ~grpc_chttp2_stream();
};

absl::Status grpc_chttp2_data_parser_parse(void* parser, grpc_chttp2_transport* transport,
                                           grpc_chttp2_stream* stream, const grpc_slice& piece,
                                           int frame_ends);
void grpc_chttp2_cancel_stream(grpc_chttp2_transport* transport, grpc_chttp2_stream* stream,
                               absl::Status why);

namespace tilewire::rpc {
namespace {

constexpr const char* kParseData =
    "_Z29grpc_chttp2_data_parser_parsePvP21grpc_chttp2_transportP18grpc_chttp2_streamRK10grpc_slicei";

/// The next ones of those names, which are the library's.
struct MessageReading {
  using Create = void(grpc_chttp2_stream*, grpc_chttp2_transport*, grpc_stream_refcount*, const void*,
                      grpc_core::Arena*);
  using Destroy = void(grpc_chttp2_stream*);
  using Parse = absl::Status(void*, grpc_chttp2_transport*, grpc_chttp2_stream*, const grpc_slice&, int);
  using Cancel = void(grpc_chttp2_transport*, grpc_chttp2_stream*, absl::Status);
  using EndpointOf = grpc_endpoint*(grpc_chttp2_transport*);
  using NameOf = absl::string_view(grpc_endpoint*);
  using ElementOf = grpc_call_element*(grpc_call_stack*, size_t);
  using CallOf = grpc_call*(grpc_call_element*);
  template <typename Function>
  static Function* Next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  }

  /// Its status is of whichever Abseil we are built with.
  static const char* NameOfCancel() {
    Dl_info info{};
    return dladdr(reinterpret_cast<void*>(&grpc_chttp2_cancel_stream), &info) != 0 ? info.dli_sname : "";
  }

  Create* const create = Next<Create>(
      "_ZN18grpc_chttp2_streamC1EP21grpc_chttp2_transportP20grpc_stream_refcountPKvPN9grpc_core5ArenaE");
  Destroy* const destroy = Next<Destroy>("_ZN18grpc_chttp2_streamD1Ev");
  Parse* const parse = Next<Parse>(kParseData);
  Cancel* const cancel = Next<Cancel>(NameOfCancel());
  EndpointOf* const endpoint_of = Next<EndpointOf>("_Z27grpc_transport_get_endpointP14grpc_transport");
  NameOf* const peer_of = Next<NameOf>("_Z22grpc_endpoint_get_peerP13grpc_endpoint");
  NameOf* const local_of = Next<NameOf>("_Z31grpc_endpoint_get_local_addressP13grpc_endpoint");
  ElementOf* const element_of = Next<ElementOf>("_Z23grpc_call_stack_elementP15grpc_call_stackm");
  CallOf* const call_of = Next<CallOf>("_Z26grpc_call_from_top_elementP17grpc_call_element");
  const bool is_seen =
      SeesReads() && create != nullptr && destroy != nullptr && parse != nullptr && cancel != nullptr &&
      endpoint_of != nullptr && peer_of != nullptr && local_of != nullptr && element_of != nullptr &&
      call_of != nullptr &&
      dlsym(RTLD_DEFAULT, kParseData) == reinterpret_cast<void*>(&grpc_chttp2_data_parser_parse);

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

/// Of clients whom our listener took alone: not of servers that are not ours, or of clients in this process.
std::shared_ptr<const BlocksKept::Share> ShareOfMessages(grpc_chttp2_transport* transport) {
  if (!are_limited) return nullptr;
  const auto& library = MessageReading::OfLibrary();
  grpc_endpoint* const endpoint = library.endpoint_of(transport);
  const std::string peer(library.peer_of(endpoint));
  Allowance* allowance = nullptr;
  constexpr std::string_view kUnix = "unix";  // and unix-abstract
  if (peer.starts_with(kUnix)) {
    // Whoever listens has a name; who connects by gRPC has none.
    if (library.local_of(endpoint) != "unix:") allowance = &OfProcess().near;
  } else if (const auto account = ReadAccounts::OfProcess().Find(peer)) {
    allowance = account->window > 0 ? &OfProcess().wide : &OfProcess().near;
  }
  if (allowance == nullptr) return nullptr;
  return std::make_shared<const BlocksKept::Share>(
      BlocksKept::Share{.allowance = allowance, .name = PeerGroup(peer)});
}

/// gRPC 1.51 reads into blocks that begin with the count of who uses them; what is small has none.
BlocksKept::Block BlockOf(const grpc_slice& piece) {
  if (reinterpret_cast<uintptr_t>(piece.refcount) <= 1) return {};
  return {.at = piece.refcount, .bytes = static_cast<int64_t>(malloc_usable_size(piece.refcount))};
}

/// How many words behind its beginning a stream has its `refcount`, which is the beginning of its call's
/// stack; -1: none was seen yet.
std::atomic<int> stack_at{-1};

void FindStack(const grpc_chttp2_stream* stream, const grpc_stream_refcount* refcount) {
  constexpr int kWords = 8;  // of many more
  const auto* const words = reinterpret_cast<const void* const*>(stream);
  for (int at = 1; at < kWords && stack_at < 0; ++at)
    if (words[at] == refcount) stack_at = at;
}

/// Of a stream of a server's. Nothing of it is looked at but where it is.
grpc_call* CallOf(const grpc_chttp2_stream* stream) {
  const auto& library = MessageReading::OfLibrary();
  const int at = stack_at;
  if (at < 0) return nullptr;
  return library.call_of(library.element_of(reinterpret_cast<grpc_call_stack* const*>(stream)[at], 0));
}

/// Its client is told why, and whoever handles it hears that it is over.
void Refuse(grpc_chttp2_transport* transport, grpc_chttp2_stream* stream, const Status& why) {
  const auto& library = MessageReading::OfLibrary();
  refused_messages.fetch_add(1, std::memory_order_relaxed);
  if (grpc_call* const call = CallOf(stream)) RefusedCalls::OfProcess().Add(call, why);
  // With a status of its own gRPC tells it the caller, and reads no more of the stream.
  absl::Status error(static_cast<absl::StatusCode>(why.code()), std::string(why.message()));
  constexpr auto kStatus = "type.googleapis.com/grpc.status.int.grpc_status";
  error.SetPayload(kStatus, absl::Cord(std::to_string(static_cast<int>(why.code()))));
  library.cancel(transport, stream, error);
}

}  // namespace

void LimitMessagesOnWay(int64_t near_bytes, int64_t wide_bytes) {
  OfProcess().near.SetLimit(near_bytes);
  OfProcess().wide.SetLimit(wide_bytes);
  are_limited = true;
}

bool SeesMessages() {
  return MessageReading::OfLibrary().is_seen;
}

uint64_t RefusedMessages() {
  return refused_messages.load(std::memory_order_relaxed);
}

}  // namespace tilewire::rpc

// What the library calls by these names is this.

grpc_chttp2_stream::grpc_chttp2_stream(grpc_chttp2_transport* transport, grpc_stream_refcount* refcount,
                                       const void* server_data, grpc_core::Arena* arena) {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  MessageReading::OfLibrary().create(this, transport, refcount, server_data, arena);
  if (stack_at < 0) FindStack(this, refcount);
}

grpc_chttp2_stream::~grpc_chttp2_stream() {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  if (OfProcess().on_way.Forget(this)) RefusedCalls::OfProcess().Forget(CallOf(this));
  MessageReading::OfLibrary().destroy(this);
}

absl::Status grpc_chttp2_data_parser_parse(void* parser, grpc_chttp2_transport* transport,
                                           grpc_chttp2_stream* stream, const grpc_slice& piece,
                                           int frame_ends) {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  const auto& library = MessageReading::OfLibrary();
  if (library.is_seen) {
    const std::string_view bytes(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(piece)),
                                 GRPC_SLICE_LENGTH(piece));
    const auto verdict = OfProcess().on_way.Came(
        stream, bytes, [&] { return BlockOf(piece); }, [&] { return ShareOfMessages(transport); });
    if (!verdict.refusal.ok()) Refuse(transport, stream, verdict.refusal);
    if (!verdict.is_wanted) return absl::OkStatus();
  }
  return library.parse(parser, transport, stream, piece, frame_ends);
}

void grpc_chttp2_cancel_stream(grpc_chttp2_transport* transport, grpc_chttp2_stream* stream,
                               absl::Status why) {
  using namespace tilewire::rpc;  // NOLINT(google-build-using-namespace): as if it were there
  // Whose message was refused is told so, and his call, which hears of it, would have him told again.
  if (!OfProcess().on_way.IsRefused(stream)) MessageReading::OfLibrary().cancel(transport, stream, why);
}

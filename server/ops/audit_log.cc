#include "server/ops/audit_log.h"

#include <fcntl.h>
#include <spdlog/common.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/ops/json_line.h"
#include "server/ops/line_text.h"
#include "server/ops/log_sink.h"
#include "server/ops/logging.h"

namespace tilewire::ops {
namespace {

constexpr size_t kMostWaitingBytes = 4 << 20;
constexpr std::chrono::milliseconds kGather{50};

/// Empty text and zeros are left out.
class Line {
 public:
  Line& AddTime() {
    json_.AddOurs("ts", Timestamp(spdlog::log_clock::now()));
    return *this;
  }
  [[gnu::always_inline]] Line& Add(std::string_view name, std::string_view text) {
    if (!text.empty()) json_.Add(name, text);
    return *this;
  }
  /// A word of ours.
  [[gnu::always_inline]] Line& AddOurs(std::string_view name, std::string_view text) {
    if (!text.empty()) json_.AddOurs(name, text);
    return *this;
  }
  [[gnu::always_inline]] Line& Add(std::string_view name, uint64_t number) {
    if (number > 0) json_.Add(name, number);
    return *this;
  }
  [[gnu::always_inline]] Line& AddMembers(std::string_view members) {
    json_.AddMembers(members);
    return *this;
  }
  /// What is the same for call after call.
  Line& AddWho(const rpc::CallRecord& record) {
    return AddOurs("decision", DecisionOf(record.status))
        .Add("identity", record.identity)
        .Add("caller", record.caller)
        .Add("peer", record.peer)
        .Add("method", record.method)
        .Add("operation", record.operation)
        .AddOurs("status", CodeName(record.status.code()));
  }
  /// With its end, for as long as this lives.
  std::string_view End() {
    json_.End();
    text_ += '\n';
    return text_.view();
  }
  std::string_view members() const { return text_.view().substr(1); }

 private:
  LineText text_;
  JsonLine json_{&text_};
};

/// What lines of calls that were done have alike, of one thread: they come from the same few connections
/// again and again, and only the first one's names are looked at byte by byte.
class KnownCallers {
 public:
  std::string_view MembersOf(const rpc::CallRecord& record) {
    // Of one host's peers it is the port that differs, of one connection's calls perhaps what they do.
    const std::string& peer = record.peer;
    const size_t port = peer.size() < 2 ? 0 : 10 * Byte(peer[peer.size() - 2]) + Byte(peer.back());
    const size_t does = record.method.size() + 5 * record.operation.size();
    Known& known = known_[(port + 7 * does) % known_.size()];
    if (!known.Is(record)) known = Known(record);
    return known.members;
  }

 private:
  static size_t Byte(char c) { return static_cast<unsigned char>(c); }

  struct Known {
    Known() = default;
    explicit Known(const rpc::CallRecord& of)
        : identity(of.identity),
          caller(of.caller),
          peer(of.peer),
          method(of.method),
          operation(of.operation),
          members(Line().AddWho(of).Add("calls", uint64_t{1}).members()) {}
    bool Is(const rpc::CallRecord& of) const {
      return peer == of.peer && identity == of.identity && caller == of.caller && method == of.method &&
             operation == of.operation && !members.empty();
    }
    std::string identity, caller, peer, method, operation, members;
  };
  std::array<Known, 16> known_;
};

}  // namespace

Result<rpc::FileDescriptor> OpenAuditFile(const std::string& path) {
  rpc::FileDescriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
  if (file) return file;
  return Fail(Status(
      Code::kFailedPrecondition, "BAD_VALUE",
      "--audit-log is " + path + ", which cannot be appended to: " + std::system_category().message(errno)));
}

std::string_view DecisionOf(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return "done";
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
      return "denied";
    case Code::kInvalidArgument:
    case Code::kUnimplemented:
    case Code::kResourceExhausted:
    case Code::kNotFound:
    case Code::kFailedPrecondition:
      return "refused";
    default:
      return "failed";
  }
}

AuditLog::AuditLog(rpc::FileDescriptor file)
    : file_(std::move(file)),
      sink_(std::make_unique<LogSink>(
          file_.get(), kMostWaitingBytes,
          [](uint64_t lines) {
            return std::string(Line().AddTime().Add("decision", "dropped").Add("lines", lines).End());
          },
          kGather)) {}

AuditLog::~AuditLog() = default;

void AuditLog::Tell(const rpc::CallRecord& record) {
  thread_local KnownCallers known;
  Line line;
  line.AddTime();
  if (record.status.ok())
    line.AddMembers(known.MembersOf(record));
  else
    line.AddWho(record).Add("reason", record.status.reason()).Add("calls", uint64_t{1});
  sink_->Append(line.Add("bytes_in", record.bytes_in)
                    .Add("bytes_out", record.bytes_out)
                    .Add("region_bytes_in", static_cast<uint64_t>(record.timing.region_bytes_in))
                    .Add("region_bytes_out", static_cast<uint64_t>(record.timing.region_bytes_out))
                    .Add("request_id", record.request_id)
                    .End());
}

void AuditLog::TellFolded(const FailureKind& kind, uint64_t calls) {
  sink_->Append(Line()
                    .AddTime()
                    .Add("decision", "folded")
                    .Add("caller", kind.caller)
                    .Add("method", kind.method)
                    .Add("status", kind.status)
                    .Add("reason", kind.reason)
                    .Add("calls", calls)
                    .End());
}

void AuditLog::Flush() {
  sink_->flush();
}

uint64_t AuditLog::dropped() const {
  return sink_->dropped();
}

}  // namespace tilewire::ops

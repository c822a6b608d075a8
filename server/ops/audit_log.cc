#include "server/ops/audit_log.h"

#include <fcntl.h>
#include <spdlog/common.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/base/per_thread.h"
#include "server/ops/json_line.h"
#include "server/ops/line_text.h"
#include "server/ops/log_sink.h"
#include "server/ops/logging.h"
#include "server/rpc/listener/peer.h"

namespace tilewire::ops {
namespace {

constexpr size_t kMostWaitingBytes = 4 << 20;
constexpr std::chrono::milliseconds kGather{50};

/// Empty text and zeros are left out.
class Line {
 public:
  Line& AddTime(spdlog::log_clock::time_point now = spdlog::log_clock::now()) {
    json_.AddOurs("ts", Timestamp(now));
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
  Line& AddMoved(const rpc::CallRecord& record) {
    return Add("bytes_in", record.bytes_in)
        .Add("bytes_out", record.bytes_out)
        .Add("region_bytes_in", static_cast<uint64_t>(record.timing.region_bytes_in))
        .Add("region_bytes_out", static_cast<uint64_t>(record.timing.region_bytes_out));
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

/// Lines of calls that were done, of one thread: they come from the same few connections and move as much
/// again and again, so that only time and request id differ. Names are looked at byte by byte once.
class KnownLines {
 public:
  /// The line of this call, for as long as no other is asked for; empty where its id needs a closer look.
  std::string_view Of(const rpc::CallRecord& record, spdlog::log_clock::time_point now) {
    if (record.request_id.empty() || !IsPlainText(record.request_id)) return {};
    const size_t does = record.method.size() + 5 * record.operation.size();
    Known& known = known_[(rpc::PeerSlot(record.peer, known_.size()) + 7 * does) % known_.size()];
    if (!known.Is(record)) known = Known(record);
    return known.LineOf(record, now);
  }

 private:
  static constexpr std::string_view kBegin = R"({"ts":")", kEnd = "\"}\n";

  struct Moved {
    explicit Moved(const rpc::CallRecord& by)
        : in(by.bytes_in),
          out(by.bytes_out),
          region_in(static_cast<uint64_t>(by.timing.region_bytes_in)),
          region_out(static_cast<uint64_t>(by.timing.region_bytes_out)) {}
    bool operator==(const Moved&) const = default;
    uint64_t in, out, region_in, region_out;
  };

  class Known {
   public:
    Known() = default;
    explicit Known(const rpc::CallRecord& of)
        : identity_(of.identity),
          caller_(of.caller),
          peer_(of.peer),
          method_(of.method),
          operation_(of.operation),
          members_(Line().AddWho(of).Add("calls", uint64_t{1}).members()) {}
    bool Is(const rpc::CallRecord& of) const {
      return peer_ == of.peer && identity_ == of.identity && caller_ == of.caller && method_ == of.method &&
             operation_ == of.operation && !members_.empty();
    }
    std::string_view LineOf(const rpc::CallRecord& record, spdlog::log_clock::time_point now) {
      const std::string_view time = Timestamp(now), id = record.request_id;
      if (const Moved moved(record);
          moved_ != moved || time.size() != time_bytes_ || id.size() != id_bytes_) {
        Line line;
        text_ =
            line.AddOurs("ts", time).AddMembers(members_).AddMoved(record).AddOurs("request_id", id).End();
        moved_ = moved;
        time_bytes_ = time.size();
        id_bytes_ = id.size();
      }
      std::memcpy(text_.data() + kBegin.size(), time.data(), time.size());
      std::memcpy(text_.data() + text_.size() - kEnd.size() - id.size(), id.data(), id.size());
      return text_;
    }

   private:
    std::string identity_, caller_, peer_, method_, operation_, members_;
    std::optional<Moved> moved_;  ///< as the line says
    std::string text_;            ///< the last one, from kBegin and a time to an id and kEnd
    size_t time_bytes_ = 0, id_bytes_ = 0;
  };
  std::array<Known, 64> known_;
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

void AuditLog::Tell(const rpc::CallRecord& record, std::chrono::system_clock::time_point now) {
  if (record.status.ok())
    if (const std::string_view line = PerThread<KnownLines>().Of(record, now); !line.empty())
      return sink_->Append(line);
  sink_->Append(Line()
                    .AddTime(now)
                    .AddWho(record)
                    .Add("reason", record.status.reason())
                    .Add("calls", uint64_t{1})
                    .AddMoved(record)
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

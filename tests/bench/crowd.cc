#include "tests/bench/crowd.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <stdexcept>

#include "proto/wire/codec.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::bench {
namespace {

constexpr int64_t kMessageBytes = 1 << 20, kBlockPart = 64 << 10, kMissing = 1000;
constexpr size_t kFrameBytes = 16 << 10;  // every peer takes as much
enum Frame : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindow = 8
};
constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4;
constexpr uint32_t kInitialWindowSetting = 4, kEnhanceYourCalm = 11;

void AppendNumber(std::string* out, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) *out += static_cast<char>(number >> shift);
}
uint32_t Number(const char* at, int bytes) {
  uint32_t number = 0;
  for (int i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>(at[i]);
  return number;
}
void AppendFrame(std::string* out, Frame type, uint8_t flags, uint32_t stream, std::string_view payload) {
  AppendNumber(out, payload.size(), 3);
  *out += static_cast<char>(type);
  *out += static_cast<char>(flags);
  AppendNumber(out, stream, 4);
  out->append(payload);
}
/// gRPC's frame around a message.
void AppendMessage(std::string* out, std::string_view header, int64_t payload_bytes) {
  *out += '\0';
  AppendNumber(out, header.size() + static_cast<uint64_t>(payload_bytes), 4);
  out->append(header);
  out->append(static_cast<size_t>(payload_bytes), '\1');
}

std::string Headers() {
  std::string block;  // literal fields, never indexed, nothing compressed
  for (const auto& [name, value] : {std::pair<std::string_view, std::string_view>{":method", "POST"},
                                    {":scheme", "http"},
                                    {":path", "/tilewire.v1.Kernels/Execute"},
                                    {":authority", "localhost"},
                                    {"content-type", "application/grpc"},
                                    {"te", "trailers"}}) {
    block += '\x10';
    for (const std::string_view text : {name, value}) {
      block += static_cast<char>(text.size());
      block += text;
    }
  }
  return block;
}

std::string OpenOf(Stall stall, int64_t operand_bytes) {
  v1::ExecuteRequest request;
  v1::Open* open = request.mutable_open();
  const bool one = stall == Stall::kReadsNothing;
  if (one) {
    open->mutable_transpose();
  } else {
    open->mutable_rmse();
  }
  for (int i = 0; i < (one ? 1 : 2); ++i) {
    v1::ArraySpec* spec = open->add_operands();
    spec->set_dtype(v1::DTYPE_F32);
    spec->add_shape(operand_bytes / 4 / 1024);
    spec->add_shape(1024);
  }
  return request.SerializeAsString();
}

/// What the stream sends, gRPC frames included.
std::string Script(Stall stall, int64_t operand_bytes) {
  std::string script;
  if (stall == Stall::kBeforeOpen) return script;
  AppendMessage(&script, OpenOf(stall, operand_bytes), 0);
  const auto chunk = [&](int64_t at, int64_t bytes) {
    AppendMessage(&script,
                  wire::ChunkHeader(0, static_cast<uint64_t>(at), std::nullopt, static_cast<uint64_t>(bytes)),
                  bytes);
  };
  if (stall == Stall::kMidBlock) chunk(0, kBlockPart);
  if (stall == Stall::kMidMessage) {
    chunk(0, kMessageBytes);
    script.resize(script.size() - kMissing);
  }
  if (stall == Stall::kOneOperand || stall == Stall::kReadsNothing)
    for (int64_t at = 0; at < operand_bytes; at += kMessageBytes) chunk(at, kMessageBytes);
  return script;
}

int Connect(const std::string& address) {
  const size_t colon = address.rfind(':');
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0)
    throw std::runtime_error("cannot resolve " + address);
  int fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  if (fd < 0) throw std::runtime_error("cannot connect to " + address);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

}  // namespace

class StalledCrowd::Stream {
 public:
  Stream(const std::string& address, std::shared_ptr<const std::string> script, bool ends)
      : fd_(Connect(address)), script_(std::move(script)), ends_(ends) {
    out_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    AppendFrame(&out_, kSettings, 0, 0, "");
    AppendFrame(&out_, kHeaders, kEndHeaders, 1, Headers());
  }
  ~Stream() { Close(); }

  int fd() const { return fd_; }
  bool wants_to_write() const { return !out_.empty() || Sendable() > 0; }
  /// Reads and writes what can be; whether anything moved.
  bool Step() {
    const std::lock_guard lock(mutex_);
    bool moved = false;
    while (fd_ >= 0 && Receive()) moved = true;
    while (fd_ >= 0 && wants_to_write() && Send()) moved = true;
    return moved;
  }
  void AddTo(Counts* counts) const {
    const std::lock_guard lock(mutex_);
    ++counts->streams;
    counts->finished += at_ == script_->size();
    counts->reset += reset_ >= 0;
    counts->cut += reset_ == kEnhanceYourCalm;
    counts->ended += ended_;
    counts->closed += fd_ < 0;
    counts->sent += static_cast<int64_t>(at_);
  }

 private:
  size_t Sendable() const {
    if (over()) return 0;
    const int64_t window = std::min(connection_window_, stream_window_);
    return std::min({script_->size() - at_, static_cast<size_t>(std::max<int64_t>(window, 0)), kFrameBytes});
  }
  bool over() const { return ended_ || reset_ >= 0 || fd_ < 0; }

  bool Send() {
    if (out_.empty()) {
      const size_t bytes = Sendable();
      const bool last = ends_ && at_ + bytes == script_->size();
      AppendFrame(&out_, kData, last ? kEndStream : 0, 1, std::string_view(*script_).substr(at_, bytes));
      at_ += bytes;
      connection_window_ -= static_cast<int64_t>(bytes);
      stream_window_ -= static_cast<int64_t>(bytes);
    }
    const ssize_t sent = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) Close();
    if (sent <= 0) return false;
    out_.erase(0, static_cast<size_t>(sent));
    return true;
  }

  bool Receive() {
    char buffer[16 << 10];
    const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) Close();
    if (got <= 0) return false;
    in_.append(buffer, static_cast<size_t>(got));
    constexpr size_t kHeaderBytes = 9;
    while (in_.size() >= kHeaderBytes && in_.size() >= kHeaderBytes + Number(in_.data(), 3)) {
      const size_t bytes = Number(in_.data(), 3);
      OnFrame(static_cast<Frame>(in_[3]), static_cast<uint8_t>(in_[4]), Number(in_.data() + 5, 4),
              std::string_view(in_).substr(kHeaderBytes, bytes));
      in_.erase(0, kHeaderBytes + bytes);
    }
    return true;
  }

  void OnFrame(Frame type, uint8_t flags, uint32_t stream, std::string_view payload) {
    if (type == kSettings && !(flags & kAck)) {
      for (size_t at = 0; at + 6 <= payload.size(); at += 6)
        if (Number(payload.data() + at, 2) == kInitialWindowSetting) {
          const int64_t initial = Number(payload.data() + at + 2, 4);
          stream_window_ += initial - initial_window_;
          initial_window_ = initial;
        }
      AppendFrame(&out_, kSettings, kAck, 0, "");
    }
    if (type == kPing && !(flags & kAck)) AppendFrame(&out_, kPing, kAck, 0, payload);
    if (type == kWindow && payload.size() == 4)
      (stream == 0 ? connection_window_ : stream_window_) += Number(payload.data(), 4);
    if (type == kReset && payload.size() == 4 && !ended_)
      reset_ = static_cast<int64_t>(Number(payload.data(), 4));
    if ((type == kHeaders || type == kData) && (flags & kEndStream)) ended_ = true;
  }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  mutable std::mutex mutex_;
  int fd_;
  const std::shared_ptr<const std::string> script_;
  const bool ends_;
  std::string in_, out_;
  size_t at_ = 0;  ///< of the script
  int64_t connection_window_ = 65535, stream_window_ = 65535, initial_window_ = 65535;
  int64_t reset_ = -1;  ///< HTTP/2's code
  bool ended_ = false;
};

StalledCrowd::StalledCrowd(const std::string& address, const std::vector<Stall>& stalls,
                           int64_t operand_bytes) {
  std::map<Stall, std::shared_ptr<const std::string>> scripts;  // shared: they may be large
  for (const Stall stall : stalls) {
    auto& script = scripts[stall];
    if (!script) script = std::make_shared<const std::string>(Script(stall, operand_bytes));
    streams_.push_back(std::make_unique<Stream>(address, script, stall == Stall::kReadsNothing));
  }
  thread_ = std::thread([this] { Loop(); });
}

StalledCrowd::~StalledCrowd() {
  stop_.store(true);
  thread_.join();
}

void StalledCrowd::Loop() {
  std::vector<pollfd> fds(streams_.size());
  while (!stop_.load()) {
    bool moved = false;
    for (size_t i = 0; i < streams_.size(); ++i) {
      moved |= streams_[i]->Step();
      const short events = streams_[i]->wants_to_write() ? POLLIN | POLLOUT : POLLIN;
      fds[i] = {.fd = streams_[i]->fd(), .events = events, .revents = 0};
    }
    if (moved) moved_.fetch_add(1);
    constexpr int kStopMs = 50;
    if (!moved) poll(fds.data(), fds.size(), kStopMs);
  }
}

StalledCrowd::Counts StalledCrowd::counts() const {
  Counts counts;
  for (const auto& stream : streams_) stream->AddTo(&counts);
  return counts;
}

bool StalledCrowd::WaitUntilQuiet(std::chrono::milliseconds quiet, std::chrono::milliseconds timeout) const {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + timeout;
  auto since = Clock::now();
  for (int64_t last = -1; Clock::now() < until;) {
    const int64_t now = moved_.load();
    if (now != last) since = Clock::now();
    if (Clock::now() - since >= quiet) return true;
    last = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace tilewire::bench

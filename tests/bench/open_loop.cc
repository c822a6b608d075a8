#include "tests/bench/open_loop.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <deque>
#include <random>
#include <stdexcept>
#include <utility>

#include "tests/bench/http2_frames.h"

namespace tilewire::bench {
namespace {

using namespace http2;  // NOLINT(google-build-using-namespace)

constexpr int kDeadlineExceeded = 4, kResourceExhausted = 8, kGreetingMs = 10'000;
constexpr uint32_t kCancel = 8, kMostWindow = 0x7fffffff;
constexpr int64_t kFirstWindow = 65535;
constexpr size_t kOutBytes = 256 << 10;  // made in advance of what the socket takes

}  // namespace

class OpenLoop::Connection {
 public:
  Connection(const std::string& address, const CallForm& form) : form_(form), fd_(Connect(address)) {
    out_ = ClientGreeting(kMostWindow);
    // At once, as every client: who is slow to answer counts as far away, and is served as such.
    for (pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0}; !greeted_; Receive()) {
      Send();
      if (poll(&ready, 1, kGreetingMs) <= 0) throw std::runtime_error("the server does not greet");
    }
    Send();
  }
  ~Connection() { close(fd_); }

  int fd() const { return fd_; }
  bool wants_to_write() const { return out_at_ < out_.size(); }
  /// Calls come until the next Begin.
  void Begin(std::vector<CallEnd>* calls, const Schedule& schedule, std::vector<double>* paused) {
    calls_ = calls;
    deadline_ = schedule.deadline_seconds;
    obeys_ = schedule.obeys;
    paused_ = schedule.obeys && schedule.per_second == 0 ? paused : nullptr;
    held_until_ = looked_ = 0;
    waiting_.clear(), by_age_.clear();
    first_stream_ = next_stream_;
    streams_.clear();
  }
  void Add(uint32_t call) { waiting_.push_back(call), by_age_.push_back(call); }

  /// Reads and writes what can be. Adds calls that ended to `*ended`.
  void Step(double now, int* ended) {
    now_ = now;
    ended_ = ended;
    while (Receive()) {
    }
    Expire();
    do Fill();
    while (Send());
    looked_ = now;
  }

 private:
  struct Stream {
    uint32_t call = 0;
    bool open = true;
    bool right = false;  ///< the answer came
  };
  struct Sending {
    uint32_t stream = 0;
    size_t at = 0;
    int64_t window = 0;
  };

  bool Over(uint32_t call) const { return (*calls_)[call].status != CallEnd::kNone; }
  void End(uint32_t call, int status) {
    if (Over(call)) return;
    (*calls_)[call].status = status;
    (*calls_)[call].ended = now_;
    (*calls_)[call].own += now_ - looked_;
    ++*ended_;
  }

  void Expire() {
    for (; !by_age_.empty(); by_age_.pop_front()) {
      const uint32_t call = by_age_.front();
      if (Over(call)) continue;
      if ((*calls_)[call].due + deadline_ > now_) return;
      End(call, kDeadlineExceeded);
      const auto stream = std::find_if(streams_.begin(), streams_.end(),
                                       [&](const Stream& s) { return s.open && s.call == call; });
      if (stream == streams_.end()) continue;  // it was never sent
      std::string code;
      AppendNumber(&code, kCancel, 4);
      const auto id = first_stream_ + 2 * static_cast<uint32_t>(stream - streams_.begin());
      AppendFrame(&out_, kReset, 0, id, code);
      CloseStream(id);
    }
  }

  /// Streams open in order and are forgotten in order.
  Stream* Find(uint32_t id) {
    if (id < first_stream_ || (id - first_stream_) / 2 >= streams_.size()) return nullptr;
    Stream& stream = streams_[(id - first_stream_) / 2];
    return stream.open ? &stream : nullptr;
  }
  void CloseStream(uint32_t id) {
    Find(id)->open = false;
    --open_;
    std::erase_if(sending_, [&](const Sending& sending) { return sending.stream == id; });
    for (; !streams_.empty() && !streams_.front().open; first_stream_ += 2) streams_.pop_front();
  }

  void Fill() {
    if (out_at_ == out_.size()) out_.clear(), out_at_ = 0;
    while (out_.size() - out_at_ < kOutBytes && (SendData() || OpenStream())) {
    }
  }
  bool OpenStream() {
    if (obeys_ && now_ < held_until_) {
      if (paused_ != nullptr) return false;
      for (; !waiting_.empty(); waiting_.pop_front()) End(waiting_.front(), kResourceExhausted);
    }
    while (!waiting_.empty() && Over(waiting_.front())) waiting_.pop_front();
    if (waiting_.empty() || open_ >= most_streams_) return false;
    CallEnd& call = (*calls_)[waiting_.front()];
    call.sent = true;
    const double left = call.due + deadline_ - now_;
    AppendFrame(&out_, kHeaders, kEndHeaders, next_stream_,
                CallHeaders(std::exchange(first_, false), form_.path,
                            std::max(1, static_cast<int>(std::ceil(left * 1e3)))));
    streams_.push_back({.call = waiting_.front()});
    sending_.push_back({.stream = next_stream_, .window = initial_window_});
    next_stream_ += 2;
    ++open_;
    waiting_.pop_front();
    return true;
  }
  /// A frame of the first one that may send.
  bool SendData() {
    if (window_ <= 0) return false;
    const auto who =
        std::find_if(sending_.begin(), sending_.end(), [](const Sending& s) { return s.window > 0; });
    if (who == sending_.end()) return false;
    const size_t bytes = std::min({form_.body.size() - who->at, static_cast<size_t>(window_),
                                   static_cast<size_t>(who->window), kFrameBytes});
    const bool last = who->at + bytes == form_.body.size();
    AppendFrame(&out_, kData, last ? kEndStream : 0, who->stream,
                std::string_view(form_.body).substr(who->at, bytes));
    who->at += bytes;
    window_ -= static_cast<int64_t>(bytes);
    who->window -= static_cast<int64_t>(bytes);
    if (last) sending_.erase(who);
    return true;
  }

  bool Send() {
    if (!wants_to_write()) return false;
    const ssize_t sent = send(fd_, out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) throw std::runtime_error("a connection was lost");
    if (sent > 0) out_at_ += static_cast<size_t>(sent);
    if (out_at_ > kOutBytes) out_.erase(0, std::exchange(out_at_, 0));
    return sent > 0 && !wants_to_write();
  }

  bool Receive() {
    char buffer[64 << 10];
    const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      throw std::runtime_error("the server closed a connection");
    if (got <= 0) return false;
    in_.append(buffer, static_cast<size_t>(got));
    size_t at = 0;
    while (in_.size() >= at + kFrameHeaderBytes) {
      const char* const frame = in_.data() + at;
      const size_t bytes = Number(frame, 3);
      if (in_.size() < at + kFrameHeaderBytes + bytes) break;
      OnFrame(static_cast<Frame>(frame[3]), static_cast<uint8_t>(frame[4]), Number(frame + 5, 4),
              std::string_view(in_).substr(at + kFrameHeaderBytes, bytes));
      at += kFrameHeaderBytes + bytes;
    }
    in_.erase(0, at);
    return true;
  }

  void OnFrame(Frame type, uint8_t flags, uint32_t id, std::string_view payload) {
    if (type == kSettings && !(flags & kAck)) return OnSettings(payload);
    if (type == kPing && !(flags & kAck)) return AppendFrame(&out_, kPing, kAck, 0, payload);
    if (type == kGoAway) throw std::runtime_error("the server ends a connection");
    if (type == kWindow && id == 0) window_ += Number(payload.data(), 4);
    Stream* const stream = Find(id);
    if (stream == nullptr) return;
    const uint32_t call = stream->call;
    if (type == kWindow)
      for (Sending& sending : sending_)
        if (sending.stream == id) sending.window += Number(payload.data(), 4);
    if (type == kData) stream->right |= payload.find(form_.expects) != std::string_view::npos;
    if (type == kHeaders)
      if (const Trailers trailers = TrailersIn(payload); trailers.status >= 0) {
        End(call, trailers.status == 0 && !stream->right ? CallEnd::kWrong : trailers.status);
        if (paused_ != nullptr && trailers.status == kResourceExhausted)
          paused_->push_back(now_ + trailers.pushback_ms * 1e-3);
        if (trailers.for_others) held_until_ = std::max(held_until_, now_ + trailers.pushback_ms * 1e-3);
      }
    if (type == kReset || flags & kEndStream) {
      if (type == kData || type == kHeaders || type == kReset) {
        End(call, CallEnd::kLost);
        CloseStream(id);
      }
    }
  }
  void OnSettings(std::string_view payload) {
    for (size_t at = 0; at + 6 <= payload.size(); at += 6) {
      const uint32_t setting = Number(payload.data() + at, 2), value = Number(payload.data() + at + 2, 4);
      if (setting == kMostStreamsSetting) most_streams_ = static_cast<int>(std::min(value, 1u << 20));
      if (setting != kInitialWindowSetting) continue;
      for (Sending& sending : sending_) sending.window += static_cast<int64_t>(value) - initial_window_;
      initial_window_ = value;
    }
    AppendFrame(&out_, kSettings, kAck, 0, "");
    greeted_ = true;
  }

  const CallForm& form_;
  const int fd_;
  std::string in_, out_;
  size_t out_at_ = 0;  ///< sent
  std::vector<CallEnd>* calls_ = nullptr;
  bool obeys_ = false;
  std::vector<double>* paused_ = nullptr;  ///< callers of a closed loop, until then
  double deadline_ = 0, now_ = 0, looked_ = 0, held_until_ = 0;
  int* ended_ = nullptr;
  std::deque<uint32_t> waiting_, by_age_;
  std::deque<Stream> streams_;
  std::deque<Sending> sending_;
  uint32_t first_stream_ = 1, next_stream_ = 1;
  int open_ = 0, most_streams_ = 100;
  bool first_ = true, greeted_ = false;
  int64_t window_ = kFirstWindow, initial_window_ = kFirstWindow;
};

OpenLoop::OpenLoop(const std::string& address, int connections, CallForm form, uint64_t seed)
    : form_(std::move(form)), random_(seed) {
  for (int i = 0; i < connections; ++i) connections_.push_back(std::make_unique<Connection>(address, form_));
}

OpenLoop::~OpenLoop() = default;

std::vector<CallEnd> OpenLoop::Run(const Schedule& schedule) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::mt19937_64 random{random_++};
  std::exponential_distribution<double> unit(1);
  const double end = schedule.seconds + schedule.then_seconds;
  const auto after = [&](double due) {
    const double next = due + unit(random) / schedule.per_second;
    if (next < schedule.seconds) return next;
    return std::max(due, schedule.seconds) + unit(random) / std::max(schedule.then_per_second, 1e-9);
  };
  std::vector<CallEnd> calls;
  std::vector<pollfd> fds(connections_.size());
  std::vector<double> paused;
  for (auto& connection : connections_) connection->Begin(&calls, schedule, &paused);
  const auto add = [&](double due, double at) {
    calls.push_back({.due = due, .own = at - due});
    const auto call = static_cast<uint32_t>(calls.size() - 1);
    connections_[call % connections_.size()]->Add(call);
  };
  const bool open = schedule.per_second > 0;
  double next = open ? after(0) : 0;
  for (int ended = 0;;) {
    const double at = now();
    std::erase_if(paused, [&](double until) { return until <= at; });
    const int callers = schedule.under_way - static_cast<int>(paused.size());
    if (open)
      for (; next <= std::min(at, end); next = after(next)) add(next, at);
    else
      while (at < end && static_cast<int>(calls.size()) - ended < callers) add(at, at);
    for (size_t i = 0; i < fds.size(); ++i) {
      connections_[i]->Step(at, &ended);
      fds[i] = {.fd = connections_[i]->fd(),
                .events = static_cast<short>(connections_[i]->wants_to_write() ? POLLIN | POLLOUT : POLLIN)};
    }
    if (at >= end && ended == static_cast<int>(calls.size())) return calls;
    constexpr double kShortest = 100e-6, kLongest = 1e-3;  // many calls at a time; deadlines are seen to
    const double sleep = std::clamp(open ? next - now() : kLongest, kShortest, kLongest);
    const timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(sleep * 1e9)};
    ppoll(fds.data(), fds.size(), &timeout, nullptr);
  }
}

}  // namespace tilewire::bench

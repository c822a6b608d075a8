#include "tests/fuzz/connection/client.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <utility>

#include "tests/fuzz/fuzz_input.h"

namespace tilewire::fuzz {
namespace {

constexpr size_t kIdBytes = 33;
/// For a server that does nothing at all any more, which is a defect; no machine is as slow as that.
constexpr int kPatienceMs = 60'000;
/// Where an answer need not come, because the input closed a window or holds what a call waits for, the
/// server is given up after so many polls of a millisecond in which it said nothing, in all of an input. It
/// decides how far an input gets, never whether it is right.
constexpr int kSilences = 8, kSilenceMs = 1;

/// Whether that comes in time. libFuzzer's own alarm interrupts a wait once a minute: then it begins anew.
bool Comes(pollfd* ready, int patience_ms) {
  int count;
  while ((count = poll(ready, 1, patience_ms)) < 0 && errno == EINTR) {
  }
  return count == 1;
}

}  // namespace

Client::Client(rpc::FileDescriptor connected, std::string shared_memory)
    : fd_(std::move(connected)), shared_memory_(std::move(shared_memory)) {
  fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  const int on = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // not of unix sockets
  Await();  // the server speaks first: from then on the connection is known to all of it
}

void Client::Run(const Script& script, bool answered, const std::function<void()>& before_end) {
  sealed_ = script.failures.has_value();
  if ((script.flags & kNoGreeting) == 0) {
    // Wide windows, so that answers are never held up unless the input says so.
    Send(http2::kPreface);
    SendFrame(http2::kSettings, 0, 0, std::string_view("\0\4\x7f\xff\xff\xff", 6));
    SendFrame(http2::kWindowUpdate, 0, 0, http2::Bytes(0x7fff0000));
    ++settings_sent_;
  } else {
    framed_ = false;
  }
  for (const Record& record : script.records)
    if (!ended_) Do(record);
  if (framed_) Acknowledged();
  if (!answered) Settle([&] { return windows_.size() <= calls_.size(); });  // open calls need not be answered
  while (answered && Receive() && !windows_.empty()) Await();
  before_end();
  Finish(script.flags);
}

void Client::Do(const Record& record) {
  switch (record.kind) {
    case Kind::kCall:
      return Begin(record);
    case Kind::kMessage:
      return SendMessage(Call(record.a), record.b, Filled(record.payload));
    case Kind::kChunk:
      return SendMessage(Call(record.a), record.b, ChunkMessage(record.payload));
    case Kind::kMetadata:
      metadata_ += http2::Header(kHeaders[record.a % kHeaders.size()], record.payload);
      return;
    case Kind::kFrame: {
      const std::string_view payload = record.payload;
      const uint32_t stream = payload.empty() ? 0 : static_cast<uint8_t>(payload[0]);
      return SendFrame(record.a, record.b, stream, payload.substr(std::min<size_t>(1, payload.size())));
    }
    case Kind::kRaw:
      framed_ = false;
      return Send(record.payload);
    case Kind::kSettle:
      if (record.a % 2 != 0) return Settle([&] { return windows_.empty(); });
      return Settle([&] { return answered_ || windows_.empty(); });
    case Kind::kEnd:
      return End(record);
  }
}

void Client::Begin(const Record& record) {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  if (!name_.empty()) metadata_ += http2::Header("x-request-id", name_);
  const auto block = http2::Request(kMethods[record.a % kMethods.size()], std::exchange(metadata_, {}));
  calls_.push_back(stream);
  windows_[stream] = 0;
  SendFrame(http2::kHeaders, http2::kEndHeaders, stream, block);
  SendMessage(stream, record.b, Filled(record.payload));
}

void Client::SendMessage(uint32_t stream, uint8_t flags, const std::string& message) {
  if (stream == 0) return;
  std::string data(1, (flags & kCompressed) != 0 ? 1 : 0);
  data += http2::Bytes(static_cast<uint32_t>(message.size() + ((flags & kLonger) != 0 ? 1000 : 0))) + message;
  if ((flags & kNone) != 0) data.clear();
  const size_t cut = (flags & kCut) != 0 ? data.size() / 2 : 0;
  if (cut > 0) SendData(stream, 0, std::string_view(data).substr(0, cut));
  data.erase(0, cut);
  const bool padded = (flags & kPadded) != 0, last = (flags & kLast) != 0;
  if (padded) data = std::string(1, 5) + data + std::string(5, '\0');
  if (!data.empty() || last)
    SendData(stream, static_cast<uint8_t>((last ? http2::kEndStream : 0) | (padded ? http2::kPadded : 0)),
             data);
  if (last) std::erase(calls_, stream);
}

void Client::SendData(uint32_t stream, uint8_t flags, std::string_view payload) {
  if (payload.size() > http2::kFrameBytes && (flags & http2::kPadded) == 0) {
    SendData(stream, 0, payload.substr(0, http2::kFrameBytes));
    return SendData(stream, flags, payload.substr(http2::kFrameBytes));
  }
  const auto size = static_cast<int64_t>(payload.size());
  Settle([&] {
    const auto own = windows_.find(stream);
    return own == windows_.end() || (window_ >= size && initial_window_ + own->second >= size);
  });
  answered_ = false;
  asked_ = stream;
  window_ -= size;
  if (const auto own = windows_.find(stream); own != windows_.end()) own->second -= size;
  SendFrame(http2::kData, flags, stream, payload);
}

void Client::End(const Record& record) {
  const uint32_t stream = Call(record.a);
  if (stream == 0) return;
  if ((record.b & 1) == 0) return SendMessage(stream, kLast | kNone, {});
  SendFrame(http2::kReset, 0, stream, http2::Bytes(8));
  answered_ |= stream == asked_;
  std::erase(calls_, stream);
  windows_.erase(stream);
}

uint32_t Client::Call(uint8_t number) const {
  return calls_.empty() ? 0 : calls_[calls_.size() - 1 - number % calls_.size()];
}

std::string Client::Filled(std::string message) const {
  for (size_t at = 0; at + kIdBytes <= message.size(); ++at) {
    const char letter = message[at];
    if (letter < 'A' || letter > 'Z' || message.compare(at, kIdBytes, std::string(kIdBytes, letter)) != 0)
      continue;
    const auto which = static_cast<size_t>(letter - 'A');
    if (letter == 'Z') message.replace(at, kIdBytes, shared_memory_);
    if (which < ids_.size()) message.replace(at, kIdBytes, ids_[which]);
  }
  return message;
}

void Client::SendFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  AcknowledgeSettings();
  Send(http2::Frame(type, flags, stream, payload));
}

void Client::AcknowledgeSettings() {
  if (!framed_ || sending_) return;  // not within a frame
  while (acks_due_ > 0) {
    --acks_due_;
    Send(http2::Frame(http2::kSettings, http2::kAck, 0, {}));
  }
}

void Client::Send(std::string_view bytes) {
  sending_ = true;
  while (!bytes.empty() && !ended_) {
    const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent >= 0) continue;
    if (errno != EAGAIN) {
      ended_ = true;
      break;
    }
    pollfd ready{.fd = fd_.get(), .events = POLLIN | POLLOUT, .revents = 0};
    FUZZ_CHECK(Comes(&ready, kPatienceMs));
    if ((ready.revents & POLLIN) != 0) Receive();
  }
  sending_ = false;
}

bool Client::Receive() {
  std::array<char, 16384> bytes;
  while (!ended_) {
    const ssize_t count = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) ended_ = true;
    if (count > 0) received_.append(bytes.data(), static_cast<size_t>(count));
  }
  Read();
  AcknowledgeSettings();
  return !ended_;
}

void Client::Read() {
  std::string_view rest = received_;
  while (rest.size() >= http2::kFrameHeader) {
    const size_t size = http2::Word(rest) >> 8;
    if (rest.size() < http2::kFrameHeader + size) break;
    Look(static_cast<uint8_t>(rest[3]), static_cast<uint8_t>(rest[4]),
         http2::Word(rest.substr(5)) & 0x7fffffff, rest.substr(http2::kFrameHeader, size));
    rest.remove_prefix(http2::kFrameHeader + size);
  }
  received_.erase(0, received_.size() - rest.size());
}

void Client::Look(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  const bool ends = (type == http2::kData || type == http2::kHeaders) && (flags & http2::kEndStream) != 0;
  if (ends || type == http2::kReset) {
    windows_.erase(stream);
    std::erase(calls_, stream);
  }
  if (stream == asked_) answered_ |= ends || type == http2::kData || type == http2::kReset;
  if (type == http2::kData) KeepIds(payload);
  if (type == http2::kWindowUpdate && stream == 0) window_ += http2::Word(payload);
  if (const auto own = windows_.find(stream); type == http2::kWindowUpdate && own != windows_.end())
    own->second += http2::Word(payload);
  if (type != http2::kSettings) return;
  ++((flags & http2::kAck) != 0 ? settings_taken_ : acks_due_);
  for (; payload.size() >= 6; payload.remove_prefix(6))
    if (http2::Word(payload) >> 16 == http2::kInitialWindow) initial_window_ = http2::Word(payload.substr(2));
}

void Client::KeepIds(std::string_view payload) {
  const auto is_id = [](std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i)
      if (i == kIdBytes / 2 ? text[i] != '-' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0)
        return false;
    return true;
  };
  for (size_t at = 0; at + kIdBytes <= payload.size(); ++at) {
    const std::string_view text = payload.substr(at, kIdBytes);
    if (!is_id(text)) continue;
    if (std::find(ids_.begin(), ids_.end(), text) == ids_.end()) ids_.emplace_back(text);
    at += kIdBytes - 1;
  }
}

void Client::Await() {
  pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  FUZZ_CHECK(Comes(&ready, kPatienceMs));
}

void Client::Acknowledged() {
  // Each SETTINGS is acknowledged in its turn, or the connection ends: the server cannot be silent.
  SendFrame(http2::kSettings, 0, 0, {});
  ++settings_sent_;
  while (Receive() && settings_taken_ < settings_sent_) Await();
}

template <typename Done>
void Client::Settle(const Done& done) {
  while (framed_ && !done() && Receive() && !done() && (sealed_ || silences_ < kSilences)) {
    if (sealed_) {
      Await();
      continue;
    }
    pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (!Comes(&ready, kSilenceMs)) ++silences_;
  }
}

void Client::Finish(uint8_t flags) {
  // Over TCP, whoever never showed how far away he is would be waited for: a reset ends that.
  if ((flags & kReset) != 0 || (flags & (kNoGreeting | kUnix)) == kNoGreeting) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  } else if ((flags & kHalfClose) != 0) {
    shutdown(fd_.get(), SHUT_WR);
    while (Receive()) Await();
  }
  fd_.Reset();
}

}  // namespace tilewire::fuzz

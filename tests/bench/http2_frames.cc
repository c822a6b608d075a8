#include "tests/bench/http2_frames.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace tilewire::bench::http2 {
namespace {

constexpr int kLongIndexBits = 7, kNameIndexBits = 6, kTableSizeBits = 5, kPlainIndexBits = 4;

/// HPACK's representations, read one after the other; a block that ends too early reads as empty ones.
class Block {
 public:
  explicit Block(std::string_view rest) : rest_(rest) {}
  bool empty() const { return rest_.empty(); }
  uint8_t first() const { return static_cast<uint8_t>(rest_.front()); }

  uint32_t Integer(int bits) {
    const uint32_t most = (1u << bits) - 1;
    uint32_t value = Byte() & most;
    if (value < most) return value;
    for (int shift = 0; shift < 28; shift += 7) {
      const uint32_t byte = Byte();
      value += (byte & 0x7f) << shift;
      if (!(byte & 0x80)) break;
    }
    return value;
  }
  std::string_view Text() {
    const size_t bytes = std::min<size_t>(Integer(7), rest_.size());
    const std::string_view text = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return text;
  }

 private:
  uint32_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::string_view rest_;
};

void AppendText(std::string* out, std::string_view text) {
  *out += static_cast<char>(text.size());
  out->append(text);
}

}  // namespace

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

std::string ClientGreeting(uint32_t window) {
  constexpr uint32_t kFirstWindow = 65535;
  std::string greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", setting, more;
  AppendNumber(&setting, kTableSizeSetting, 2);
  AppendNumber(&setting, 0, 4);
  AppendFrame(&greeting, kSettings, 0, 0, setting);
  AppendNumber(&more, window - kFirstWindow, 4);
  AppendFrame(&greeting, kWindow, 0, 0, more);
  return greeting;
}

void AppendMessage(std::string* out, std::string_view message) {
  *out += '\0';
  AppendNumber(out, message.size(), 4);
  out->append(message);
}

std::string CallHeaders(bool first, const std::string& path, int timeout_ms) {
  const std::array<std::pair<std::string_view, std::string_view>, 4> fields{
      {{":path", path},
       {":authority", "localhost"},
       {"content-type", "application/grpc"},
       {"te", "trailers"}}};
  std::string block = "\x83\x86";  // :method POST, :scheme http: HPACK's own table
  for (size_t i = 0; i < fields.size(); ++i) {
    if (first) {
      block += '\x40';
      AppendText(&block, fields[i].first);
      AppendText(&block, fields[i].second);
    } else {
      block += static_cast<char>(0x80 | (62 + fields.size() - 1 - i));  // the youngest is 62
    }
  }
  block += '\0';
  AppendText(&block, "grpc-timeout");
  AppendText(&block, std::to_string(timeout_ms) + "m");
  return block;
}

Trailers TrailersIn(std::string_view text) {
  Trailers trailers;
  for (Block block(text); !block.empty();) {
    const uint8_t kind = block.first();
    if (kind & 0x80) {
      (void)block.Integer(kLongIndexBits);
      continue;
    }
    if ((kind & 0xe0) == 0x20) {
      (void)block.Integer(kTableSizeBits);
      continue;
    }
    const bool named = block.Integer(kind & 0x40 ? kNameIndexBits : kPlainIndexBits) > 0;
    const std::string_view name = named ? std::string_view() : block.Text();
    const std::string_view value = block.Text();
    if (name == "grpc-status") trailers.status = std::atoi(std::string(value).c_str());
    // The details say so in a field, which gRPC's servers send in Huffman's code.
    if (name == "grpc-message") trailers.for_others = value.find("hold others back") != value.npos;
    if (name == "grpc-retry-pushback-ms") trailers.pushback_ms = std::atoi(std::string(value).c_str());
  }
  return trailers;
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
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

}  // namespace tilewire::bench::http2

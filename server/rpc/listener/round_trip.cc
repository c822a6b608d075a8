#include "server/rpc/listener/round_trip.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace tilewire::rpc {
namespace {

constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeaderBytes = 9;
constexpr uint8_t kSettings = 4, kAck = 1;

}  // namespace

Acknowledged FindAcknowledgement(std::string_view bytes) {
  const size_t both = std::min(bytes.size(), kClientPreface.size());
  if (bytes.substr(0, both) != kClientPreface.substr(0, both)) return Acknowledged::kNeverSeen;
  size_t at = kClientPreface.size();
  while (at + kFrameHeaderBytes <= bytes.size()) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[at + i]); };
    const size_t payload = size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2);
    if (byte(3) == kSettings && (byte(4) & kAck) != 0) return Acknowledged::kYes;
    at += kFrameHeaderBytes + payload;
  }
  return at + kFrameHeaderBytes > kLookedAtBytes ? Acknowledged::kNeverSeen : Acknowledged::kNotYet;
}

Acknowledged LookForAcknowledgement(int fd) {
  std::array<char, kLookedAtBytes> bytes;
  const ssize_t count = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (count == 0) return Acknowledged::kNeverSeen;  // half closed: gRPC's to end
  if (count < 0) return Acknowledged::kNotYet;
  return FindAcknowledgement({bytes.data(), static_cast<size_t>(count)});
}

std::string SettingsFrame(const std::vector<std::pair<uint16_t, uint32_t>>& settings) {
  constexpr size_t kSettingBytes = 6;
  std::string frame(kFrameHeaderBytes, '\0');
  frame[2] = static_cast<char>(settings.size() * kSettingBytes);
  frame[3] = static_cast<char>(kSettings);
  for (const auto& [id, value] : settings) {
    frame += {static_cast<char>(id >> 8), static_cast<char>(id)};
    for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(value >> shift);
  }
  return frame;
}

}  // namespace tilewire::rpc

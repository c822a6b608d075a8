// What is told of connections; server/ops turns it into metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/rpc/listener/window_class.h"

namespace tilewire::rpc {

/// Why a connection is closed as soon as it is accepted.
enum class Refusal : uint8_t {
  kFull,         ///< --max-connections are there
  kPeer,         ///< --max-connections-per-peer of its peer are there
  kDescriptors,  ///< the reserve of file descriptors is not for connections
};
inline constexpr std::array<std::string_view, 3> kRefusalNames{"full", "peer", "descriptors"};

/// Why the server ends a connection that it had taken in.
enum class Ending : uint8_t {
  kFailedCalls,  ///< too many calls of it came to nothing
  kMemory,       ///< memory ran short, and it held most
  kUnasked,      ///< it sent much that no call took
  kHeader,       ///< a header was too large, or came in too many frames
};
inline constexpr std::array<std::string_view, 4> kEndingNames{"failed_calls", "memory", "unasked", "header"};

/// Thread-safe; called on the listener's thread, so it must not block.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void OnConnectionOpened() {}
  /// One that was opened has ended, whoever ended it.
  virtual void OnConnectionClosed() {}
  virtual void OnConnectionRefused(Refusal why) { (void)why; }
  /// One that was opened is ended by the server; its OnConnectionClosed follows.
  virtual void OnConnectionEnded(Ending why) { (void)why; }
  /// A message of which more came than there is room for was refused, with its call.
  virtual void OnMessageRefused() {}
  /// Which windows one that was opened gets, and which ones its distance asks for.
  virtual void OnConnectionWindow(WindowClass needed, WindowClass given) {
    (void)needed;
    (void)given;
  }
  /// Something that went as it should, in words.
  virtual void OnNotice(std::string_view text) { (void)text; }
  /// Something an operator should know, in words.
  virtual void OnWarning(std::string_view text) { (void)text; }
};

}  // namespace tilewire::rpc

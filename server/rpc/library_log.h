// What gRPC and protobuf say for themselves, which would else be raw lines among ours on stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tilewire::rpc {

/// kLast: the library ends the process behind that line.
enum class LibrarySeverity : uint8_t { kDebug, kInfo, kWarning, kError, kLast };

/// Called on any thread, at any time, also while gRPC holds locks: it must not block (but for kLast), nor
/// call gRPC.
using LibraryLog =
    std::function<void(LibrarySeverity severity, std::string_view library, std::string_view text)>;

/// Their lines go to `log` while this lives, and to stderr again afterwards. Variables of gRPC's that would
/// show secrets, or break the server, are unset. Before gRPC begins, and one at a time; while there is
/// one no other thread may begin or end one.
class LibraryLogRoute {
 public:
  explicit LibraryLogRoute(LibraryLog log);
  ~LibraryLogRoute();
  LibraryLogRoute(const LibraryLogRoute&) = delete;
};

}  // namespace tilewire::rpc

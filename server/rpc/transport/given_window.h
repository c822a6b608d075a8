// Windows of single connections. gRPC 1.51 has none: without its probe it grants a connection 64 KiB beside
// the messages that are being read, and with it 4 MiB at first and by its estimate more, which takes seconds
// where small calls came before and has no bound of ours. But one thing replaces its estimate: a pointer to
// somebody who is asked for it, by which gRPC's own tests make windows of any size. It is a symbol of the
// shared library, and in 1.51 alone, which is asked for, it is used here.
#pragma once

#include <cstdint>

namespace tilewire::rpc {

/// From now on, and for the whole process, connections with gRPC's probe have windows that do not change:
/// what GivenWindow says, else kSealedWideBytes. False, and nothing changes, where this gRPC has no such
/// thing: then its probe decides. Thread-safe.
bool GiveWindows();

/// While one lives, connections that its thread hands to gRPC have windows of `bytes`. Not so of those whose
/// handshake takes time (TLS): gRPC makes their transports on threads of its own.
class GivenWindow {
 public:
  explicit GivenWindow(int64_t bytes);
  ~GivenWindow();
  GivenWindow(const GivenWindow&) = delete;
};

}  // namespace tilewire::rpc

// Sockets that listen: an address of --listen, bound.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::rpc {

/// All sockets of one address ("localhost" has two where there is IPv6). Removes what it made in the file
/// system when it goes. Thread-compatible.
class ListeningSockets {
 public:
  ListeningSockets(ListeningSockets&&) = default;
  ListeningSockets& operator=(ListeningSockets&&) = delete;
  ~ListeningSockets();

  /// As it was asked for, with the port that was picked.
  const std::string& address() const { return address_; }
  const std::vector<FileDescriptor>& sockets() const { return sockets_; }
  /// Of a host with several addresses those that others have taken or that are not permitted, and why; empty:
  /// it listens on all that this machine has.
  const std::string& left_out() const { return left_out_; }

 private:
  friend Result<ListeningSockets> ListenOn(const std::string& address, const std::vector<std::string>& hosts);
  explicit ListeningSockets(std::string address) : address_(std::move(address)) {}
  Status ListenOnUnix(const std::string& path);
  Status ListenOnTcp(const std::vector<std::string>& hosts);

  std::string address_, left_out_;
  std::vector<FileDescriptor> sockets_;
  std::string path_;  ///< of the socket file; empty where there is none
  dev_t device_ = 0;  ///< which file that was
  ino_t inode_ = 0;
};

/// Listens on "host:port", "[v6]:port" (port 0 picks one, the same for all addresses of the host; a wildcard
/// is one for both families) or "unix:PATH". Sockets neither block nor are inherited. Of a host with several
/// addresses one is enough: left_out() tells of the others. UNAVAILABLE `CANNOT_LISTEN` names the address and
/// what is wrong: taken, unknown, not permitted, a unix socket that another server answers on. A socket file
/// that nobody answers on is replaced. `hosts`: in place of the address' own, for tests.
Result<ListeningSockets> ListenOn(const std::string& address, const std::vector<std::string>& hosts = {});

}  // namespace tilewire::rpc

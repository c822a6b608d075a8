// A TCP socket at a free port of 127.0.0.1.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::testing {

/// Refuses connections for as long as it lives, unless it Listens.
class LoopbackSocket {
 public:
  LoopbackSocket() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address_;
    EXPECT_EQ(bind(socket_.get(), sockaddr_of(), bytes), 0);
    EXPECT_EQ(getsockname(socket_.get(), sockaddr_of(), &bytes), 0);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }
  void Listen() { EXPECT_EQ(listen(socket_.get(), 1), 0); }
  /// Waits for the next connection.
  rpc::FileDescriptor Accept() {
    return rpc::FileDescriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  /// A connection to it, once it Listens.
  rpc::FileDescriptor Dial() {
    rpc::FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), sockaddr_of(), sizeof address_), 0);
    return client;
  }

 private:
  sockaddr* sockaddr_of() { return reinterpret_cast<sockaddr*>(&address_); }

  const rpc::FileDescriptor socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address_{};
};

}  // namespace tilewire::testing

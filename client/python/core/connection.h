// A server as Python has it: the client's connection, and why it could not be reached.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/cpp/client.h"
#include "client/python/core/call.h"

namespace tilewire::python {

/// A connection that calls share, so that it stays until the last of them has run. In a forked child it is
/// left alone.
struct Connection {
  std::shared_ptr<client::Client> client;
  Explain explain;  ///< says what is wrong with TLS where nobody could be reached

  Connection(const std::string& address, client::ConnectOptions options);
  ~Connection();
};

/// Takes a result to memory of `bytes` bytes, by any number of threads.
client::Sink Into(uintptr_t address, uint64_t bytes);

}  // namespace tilewire::python

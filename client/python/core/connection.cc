#include "client/python/core/connection.h"

#include <cstring>
#include <span>
#include <utility>

#include "client/cpp/tls_explain.h"
#include "client/python/core/unlocked.h"

namespace tilewire::python {

Connection::Connection(const std::string& address, client::ConnectOptions options)
    : explain([address, options](Status status) {
        const bool nobody_says_why = status.code() == Code::kUnavailable && status.reason().empty();
        const std::string why = nobody_says_why ? client::ExplainTls(address, options) : std::string();
        return why.empty() ? std::move(status) : Status(Code::kUnavailable, "TLS", why);
      }) {
  RequireNotForked();
  UseGrpc();
  client = std::shared_ptr<client::Client>(
      new client::Client(client::Client::Connect(address, std::move(options))), NotInChild());
}

Connection::~Connection() {
  const Unlocked released;
  client.reset();
}

client::Sink Into(uintptr_t address, uint64_t bytes) {
  return [out = reinterpret_cast<uint8_t*>(address), bytes](uint64_t offset, std::span<const uint8_t> piece) {
    if (offset > bytes || piece.size() > bytes - offset)
      return Status(Code::kInternal, "BAD_REPLY",
                    "the server broke the contract: more bytes than the result has");
    std::memcpy(out + offset, piece.data(), piece.size());
    return Status();
  };
}

}  // namespace tilewire::python

// Why a TLS connection does not come about, in words: gRPC 1.51 does not say.
#pragma once

#include <string>

#include "client/cpp/client.h"

namespace tilewire::client {

/// Connects to `address` once more and tells what is wrong with certificates and TLS: untrusted, expired, for
/// another name, a client's certificate missing or refused, one side in clear. Empty where nothing is, or
/// nobody answers within some seconds. Sends nothing but a handshake.
std::string ExplainTls(const std::string& address, const ConnectOptions& options);

}  // namespace tilewire::client

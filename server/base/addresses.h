// What an address says of who is behind it, for server and clients.
#pragma once

#include <string_view>

namespace tilewire {

/// Whether "host:port" or "unix:PATH" is nobody's but this host's: a unix socket, "localhost", 127.0.0.0/8 or
/// [::1]. Other names may be anybody's.
bool StaysOnHost(std::string_view address);

}  // namespace tilewire

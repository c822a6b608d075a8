#include "server/base/addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

namespace tilewire {

bool StaysOnHost(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  std::string host(address.substr(0, address.rfind(':')));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

}  // namespace tilewire

// The server's certificate, its key, and who may vouch for clients: read from files and checked. No gRPC
// here.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kernels/array/status.h"

namespace tilewire::rpc {

/// Files in PEM. Without `certificate` the server speaks in clear.
struct TlsPaths {
  std::string certificate;  ///< the server's, and those that lead from it to one that clients trust
  std::string key;          ///< of the first certificate
  std::string client_ca;    ///< certificates that may vouch for clients'; empty: none is asked for
};

/// What is in them.
struct TlsPems {
  std::string certificate, key, client_ca;
  bool operator==(const TlsPems&) const = default;
};

/// Reads them as they are. INVALID_ARGUMENT with the flag and the file where one cannot be read.
Result<TlsPems> ReadTls(const TlsPaths& paths);

/// Whether they can be used. INVALID_ARGUMENT with the flag and the file where one has no certificate or key
/// in it, the key is another certificate's, or TLS takes none like it (too weak). Keys with a passphrase
/// cannot be read: nobody is there to ask.
Status CheckTls(const TlsPaths& paths, const TlsPems& pems);

/// Why nobody will take a certificate that can be used: it is over, or not good yet. Empty: there is no
/// reason.
std::string DoubtOfTls(const TlsPaths& paths, const TlsPems& pems, std::chrono::system_clock::time_point now);

/// When the first certificate in PEM is over. None where nobody can say.
std::optional<std::chrono::system_clock::time_point> EndOfCertificate(const std::string& pem);

/// All of a file of at most 4 MiB, which no pipe is, as it would be waited for; or INVALID_ARGUMENT with the
/// flag, the file and why not.
Result<std::string> ReadWholeFile(const std::string& flag, const std::string& path);

}  // namespace tilewire::rpc

// gRPC's TLS with certificates that change while the server runs.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/rpc/identity/credential_files.h"

namespace tilewire::rpc {

/// TLS 1.2 and newer. Each handshake takes the certificates that `files` has then, which are checked already;
/// connections that are there go on with what they have, also where their authority has gone. Clients are
/// asked for certificates where there are authorities for them; `required`: they must show one. What is shown
/// must be good in any case. `files` has TLS and outlives the server.
///
/// Not gRPC's own provider that watches files: it takes a certificate whose key has not come yet, and is then
/// without any.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(const CredentialFiles* files, bool required);

}  // namespace tilewire::rpc

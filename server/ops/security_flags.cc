#include "server/ops/security_flags.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/base/addresses.h"
#include "server/ops/flag_forms.h"
#include "server/rpc/identity/identity.h"

namespace tilewire::ops {
namespace {

constexpr const char* kProxies = "anonymous, spiffe://..., dns:..., cn:..., token:..., jwt:...";

/// What is in it is looked at where it is read.
Result<std::string> ParseFile(std::string_view flag, std::string_view text) {
  std::string path(text);
  if (path.empty() || access(path.c_str(), R_OK) == 0) return path;
  return BadValue(flag, text, "a readable file");
}

constexpr const char* kClaim = "1 to 256 printable ASCII characters";
constexpr const char* kAppended = "an absolute path of a file, in a folder that is there";

/// Of an issuer or an audience: compared as it is.
Result<std::string> ParseClaim(std::string_view flag, std::string_view text) {
  if (text.empty() || rpc::IsIdentityName(text)) return std::string(text);
  return BadValue(flag, text, kClaim);
}

/// It is opened, and made, where the server starts.
Result<std::string> ParseAppended(std::string_view flag, std::string_view text) {
  const std::filesystem::path path(text);
  std::error_code error;
  const bool good = text.empty() || (path.is_absolute() && !std::filesystem::is_directory(path, error) &&
                                     std::filesystem::is_directory(path.parent_path(), error));
  if (good) return std::string(text);
  return BadValue(flag, text, kAppended);
}

Result<std::string> ParseHealthListen(std::string_view flag, std::string_view text) {
  if (text.empty()) return std::string();
  return ParseAddress(flag, text, AddressUse::kListen);
}

/// Only its form: whether there is such a user is looked at where the process becomes it.
Result<std::string> ParseUser(std::string_view flag, std::string_view text) {
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-$";
  const size_t colon = text.find(':');
  const auto is_name = [&](std::string_view part) {
    return !part.empty() && part.find_first_not_of(kOfNames) == std::string_view::npos;
  };
  if (text.empty() || (is_name(text.substr(0, colon)) &&
                       (colon == std::string_view::npos || is_name(text.substr(colon + 1)))))
    return std::string(text);
  return BadValue(flag, text, "NAME, NAME:GROUP, or numbers");
}

Flag File(std::string name, std::string Config::*member, std::string help) {
  return Text(std::move(name), "FILE", member, "a readable file", ParseFile, std::move(help));
}

Flag TrustedProxies() {
  Flag flag{.name = "trusted-proxy",
            .placeholder = "IDENTITY",
            .default_text = "anonymous, without TLS, --tokens and --jwks"};
  flag.allowed = kProxies;
  flag.help = "Whose --identity-header counts: its identity without that header; may be repeated";
  flag.repeatable = true;
  flag.store = [](Config* config, std::string_view text) -> Status {
    const auto identity = rpc::ParseIdentity("--trusted-proxy", text);
    // Nobody is a proxy by what a proxy says of him, and the users behind unix sockets are not known. A
    // beginning and a star, as in --policy, would be the name of nobody.
    if (!identity || identity->kind == rpc::IdentityKind::kHeader ||
        identity->kind == rpc::IdentityKind::kUid || rpc::HasPattern(*identity))
      return BadValue("--trusted-proxy", text, std::string(kProxies) + ", without *").value();
    config->trusted_proxies.push_back(identity->Text());
    return Status();
  };
  return flag;
}

Status Needs(std::string_view flag, std::string_view value, std::string_view other) {
  return BadValue(flag, value, std::string(other) + " beside it").value();
}

Status CheckTls(const Config& config) {
  if (!config.tls_cert.empty() && config.tls_key.empty())
    return Needs("--tls-cert", config.tls_cert, "--tls-key");
  if (config.tls_cert.empty() && !config.tls_key.empty())
    return Needs("--tls-key", config.tls_key, "--tls-cert");
  if (config.tls_cert.empty() && !config.tls_client_ca.empty())
    return Needs("--tls-client-ca", config.tls_client_ca, "--tls-cert and --tls-key");
  if (config.tls_client_ca.empty() && config.tls_client == "required")
    return Needs("--tls-client", config.tls_client, "--tls-client-ca");
  return Status();
}

void AddJwtFlags(std::vector<Flag>* flags) {
  flags->push_back(
      File("jwks", &Config::jwks,
           "Public keys (a JWK set: RS256, ES256, EdDSA) whose JWT name callers. Read again when "
           "it changes"));
  flags->push_back(Text("jwt-issuer", "TEXT", &Config::jwt_issuer, kClaim, ParseClaim,
                        "Who makes those tokens: their iss"));
  flags->push_back(Text("jwt-audience", "TEXT", &Config::jwt_audience, kClaim, ParseClaim,
                        "Whom they must be for: in their aud"));
  flags->push_back(Seconds("jwt-skew-seconds", &Config::jwt_skew_seconds, 0, 3600,
                           "Seconds that their issuer's clock may differ"));
}

Status CheckJwt(const Config& config) {
  if (!config.jwks.empty() && (config.jwt_issuer.empty() || config.jwt_audience.empty()))
    return Needs("--jwks", config.jwks, "--jwt-issuer and --jwt-audience");
  if (config.jwks.empty() && !config.jwt_issuer.empty())
    return Needs("--jwt-issuer", config.jwt_issuer, "--jwks");
  if (config.jwks.empty() && !config.jwt_audience.empty())
    return Needs("--jwt-audience", config.jwt_audience, "--jwks");
  return Status();
}

}  // namespace

void AddSecurityFlags(std::vector<Flag>* flags) {
  flags->push_back(
      File("tls-cert", &Config::tls_cert,
           "Certificate of the server, and those up to its authority, in PEM: TCP is then TLS, 1.2 "
           "or newer. Read again when it changes"));
  flags->push_back(File("tls-key", &Config::tls_key, "Its key, in PEM without a passphrase"));
  flags->push_back(File("tls-client-ca", &Config::tls_client_ca,
                        "Authorities that vouch for certificates of clients, in PEM"));
  flags->push_back(Choice("tls-client", &Config::tls_client, {"optional", "required"},
                          "Whether clients must show a certificate; one that is shown must be good"));
  flags->push_back(Switch("insecure", &Config::insecure, true,
                          "Listen beyond this host without TLS: whoever sees the network reads and writes"));
  flags->push_back(
      File("tokens", &Config::tokens,
           "Bearer tokens that name callers: NAME SALT SHA256 [EXPIRES] a line. Read again when it "
           "changes"));
  AddJwtFlags(flags);
  flags->push_back(
      File("policy", &Config::policy,
           "Which callers may do what, in JSON; whom it does not name may do nothing. Read again when "
           "it changes"));
  flags->push_back(Choice("anonymous", &Config::anonymous, {"allow", "deny"},
                          "Whether callers get in whom neither certificate, token nor header names"));
  flags->push_back(Text("identity-header", "NAME", &Config::identity_header, "a gRPC metadata key",
                        ParseHeader,
                        "Header by which --trusted-proxy names the caller, on every call, once"));
  flags->push_back(TrustedProxies());
  flags->push_back(Text("audit-log", "FILE", &Config::audit_log, kAppended, ParseAppended,
                        "Who called what, and whether it was done: a JSON line for each call"));
  flags->push_back(Text("health-listen", "ADDR", &Config::health_listen,
                        "host:port, [v6]:port, unix:PATH; port 0 picks one", ParseHealthListen,
                        "Address that answers grpc.health.v1 and nothing else, always in clear: for probes"));
  flags->push_back(Text("user", "NAME", &Config::user, "NAME, NAME:GROUP, or numbers", ParseUser,
                        "User to become before anything is opened; for root alone"));
  flags->push_back(Switch("no-confinement", &Config::confine, false,
                          "Keep capabilities, all files and all system calls; for debuggers and profilers"));
  flags->push_back(Switch("core-dumps", &Config::core_dumps, true,
                          "Let the system keep the memory of a crash, callers' arrays included"));
}

Status CheckSecurity(const Config& config) {
  TILEWIRE_RETURN_IF_ERROR(CheckTls(config));
  TILEWIRE_RETURN_IF_ERROR(CheckJwt(config));
  const bool tls = !config.tls_cert.empty();
  const bool bearers = !config.tokens.empty() || !config.jwks.empty(), proves = tls || bearers;
  if (config.identity_header == "authorization" && bearers)
    return BadValue("--identity-header", "authorization",
                    "another header, as that one has tokens with --tokens or --jwks")
        .value();
  // Where callers can be told apart by what they prove, nobody's word counts unless he is named.
  if (!config.identity_header.empty() && proves && config.trusted_proxies.empty())
    return Needs("--identity-header", config.identity_header,
                 "with TLS, --tokens or --jwks, --trusted-proxy");
  if (config.identity_header.empty() && !config.trusted_proxies.empty())
    return Needs("--trusted-proxy", config.trusted_proxies.front(), "--identity-header");
  if (tls || config.insecure) return Status();
  for (const std::string& address : config.listen) {
    if (!StaysOnHost(address))
      return BadValue("--listen", address,
                      "localhost, 127.0.0.0/8, [::1] and unix:PATH in clear; others with --tls-cert and "
                      "--tls-key, "
                      "or with --insecure")
          .value();
  }
  return Status();
}

}  // namespace tilewire::ops

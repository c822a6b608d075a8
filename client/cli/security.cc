#include "client/cli/security.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tilewire::cli {
namespace {

constexpr std::string_view kSystem = "system";

Result<std::string> ReadText(std::string_view option, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file || !text || text.str().empty())
    return BadValue(option, path, "a readable file with something in it");
  return text.str();
}

Result<std::string> ReadPem(std::string_view option, const std::string& path, std::string_view what) {
  TILEWIRE_ASSIGN_OR_RETURN(std::string text, ReadText(option, path));
  if (text.find("-----BEGIN ") == text.npos || text.find(what) == text.npos)
    return BadValue(option, path, "a file with a " + std::string(what) + " in PEM");
  return text;
}

/// The first line; never told of in an error.
Result<std::string> ReadToken(const std::string& path) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::string text, ReadText("--token-file", path));
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  const bool visible = std::all_of(line.begin(), line.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!visible || line.find('.') == line.npos)
    return BadValue("--token-file", path, "a file with a token, NAME.SECRET, in its first line");
  return line;
}

Result<client::TlsOptions> ReadTls(const SecurityOptions& options) {
  client::TlsOptions tls;
  if (options.ca != kSystem) {
    TILEWIRE_ASSIGN_OR_RETURN(tls.ca, ReadPem("--tls-ca", options.ca, "CERTIFICATE"));
  }
  if (options.certificate.empty()) return tls;
  TILEWIRE_ASSIGN_OR_RETURN(tls.certificate, ReadPem("--tls-cert", options.certificate, "CERTIFICATE"));
  TILEWIRE_ASSIGN_OR_RETURN(tls.key, ReadPem("--tls-key", options.key, "PRIVATE KEY"));
  return tls;
}

}  // namespace

void AddSecurity(CLI::App* app, SecurityOptions* options) {
  app->add_option(
         "--tls-ca", options->ca,
         "TLS, with a server that these authorities vouch for (PEM; 'system': those of this machine)")
      ->envname("TILEWIRE_TLS_CA")
      ->type_name("FILE");
  app->add_option("--tls-cert", options->certificate, "Certificate to show a server that asks for one (PEM)")
      ->envname("TILEWIRE_CLIENT_CERT")
      ->type_name("FILE");
  app->add_option("--tls-key", options->key, "Its key (PEM)")
      ->envname("TILEWIRE_CLIENT_KEY")
      ->type_name("FILE");
  app->add_option("--token-file", options->token_file, "File with a token that says who calls")
      ->envname("TILEWIRE_TOKEN_FILE")
      ->type_name("FILE");
  app->add_flag("--insecure", options->insecure, "Send the token in clear also beyond this host");
}

Result<client::ConnectOptions> ReadSecurity(const SecurityOptions& options) {
  client::ConnectOptions connect{.insecure = options.insecure};
  if (options.certificate.empty() != options.key.empty())
    return BadValue(options.key.empty() ? "--tls-cert" : "--tls-key", options.certificate + options.key,
                    "--tls-cert and --tls-key together");
  if (!options.certificate.empty() && options.ca.empty())
    return BadValue("--tls-cert", options.certificate, "--tls-ca beside it, a file or 'system'");
  if (!options.ca.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(connect.tls, ReadTls(options));
  }
  if (!options.token_file.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(connect.token, ReadToken(options.token_file));
  }
  return connect;
}

}  // namespace tilewire::cli

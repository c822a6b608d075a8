// What the flags of who gets in may not be together.
#include <gtest/gtest.h>

#include <string>

#include "server/base/addresses.h"
#include "server/ops/flags.h"

namespace tilewire::ops {
namespace {

/// The complaint about a configuration; empty: none.
std::string SecurityComplaint(const Config& config) {
  const Status status = CheckConfig(config);
  return status.ok() ? "" : status.detail()->field;
}

TEST(Security, ClearTextStaysOnTheHostUnlessSaid) {
  for (const std::string address : {"localhost:1", "127.0.0.1:1", "127.9.9.9:0", "[::1]:1", "unix:/run/x"}) {
    EXPECT_TRUE(StaysOnHost(address)) << address;
    EXPECT_EQ(SecurityComplaint({.listen = {address}}), "") << address;
  }
  for (const std::string address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[fe80::1]:1", "example.com:1",
                                    "128.0.0.1:1", "localhost.example:1"}) {
    EXPECT_FALSE(StaysOnHost(address)) << address;
    EXPECT_EQ(SecurityComplaint({.listen = {"localhost:1", address}}), "--listen") << address;
    EXPECT_EQ(SecurityComplaint({.listen = {address}, .insecure = true}), "");
    EXPECT_EQ(SecurityComplaint({.listen = {address}, .tls_cert = "c", .tls_key = "k"}), "");
  }
}

TEST(Security, WhatNeedsSomethingBesideItSaysSo) {
  EXPECT_EQ(SecurityComplaint({.tls_cert = "c"}), "--tls-cert");
  EXPECT_EQ(SecurityComplaint({.tls_key = "k"}), "--tls-key");
  EXPECT_EQ(SecurityComplaint({.tls_client_ca = "a"}), "--tls-client-ca");
  EXPECT_EQ(SecurityComplaint({.tls_cert = "c", .tls_key = "k", .tls_client = "required"}), "--tls-client");
  EXPECT_EQ(
      SecurityComplaint({.tls_cert = "c", .tls_key = "k", .tls_client_ca = "a", .tls_client = "required"}),
      "");
}

TEST(Security, TokensOfOthersNeedAnIssuerAndAnAudience) {
  EXPECT_EQ(SecurityComplaint({.jwks = "j"}), "--jwks");
  EXPECT_EQ(SecurityComplaint({.jwks = "j", .jwt_issuer = "i"}), "--jwks");
  EXPECT_EQ(SecurityComplaint({.jwks = "j", .jwt_audience = "a"}), "--jwks");
  EXPECT_EQ(SecurityComplaint({.jwt_issuer = "i"}), "--jwt-issuer");
  EXPECT_EQ(SecurityComplaint({.jwt_audience = "a"}), "--jwt-audience");
  const Config good{.jwks = "j", .jwt_issuer = "i", .jwt_audience = "a"};
  EXPECT_EQ(SecurityComplaint(good), "");
  Config proxied = good;
  proxied.identity_header = "x-user";
  EXPECT_EQ(SecurityComplaint(proxied), "--identity-header");
  proxied.trusted_proxies = {"jwt:proxy"};
  EXPECT_EQ(SecurityComplaint(proxied), "");
}

TEST(Security, WhoMayNameOthersIsSaidWhereCallersProveWhoTheyAre) {
  EXPECT_EQ(SecurityComplaint({.identity_header = "x-user"}), "");
  EXPECT_EQ(SecurityComplaint({.trusted_proxies = {"dns:p"}}), "--trusted-proxy");
  EXPECT_EQ(SecurityComplaint({.tokens = "t", .identity_header = "x-user"}), "--identity-header");
  EXPECT_EQ(SecurityComplaint({.tls_cert = "c", .tls_key = "k", .identity_header = "x-user"}),
            "--identity-header");
  EXPECT_EQ(
      SecurityComplaint({.tokens = "t", .identity_header = "x-user", .trusted_proxies = {"token:proxy"}}),
      "");
  EXPECT_EQ(SecurityComplaint({.jwks = "k",
                               .jwt_issuer = "i",
                               .jwt_audience = "a",
                               .identity_header = "authorization",
                               .trusted_proxies = {"jwt:proxy"}}),
            "--identity-header");
  EXPECT_EQ(SecurityComplaint({.identity_header = "authorization"}), "") << "nobody else looks at it";
  Config config;
  for (const Flag& flag : Flags()) {
    if (flag.name != "trusted-proxy") continue;
    EXPECT_TRUE(flag.store(&config, "spiffe://a/b").ok());
    EXPECT_TRUE(flag.store(&config, "anonymous").ok());
    EXPECT_TRUE(flag.store(&config, "dns:*.example.org").ok()) << "a certificate may have that name";
    for (const std::string none : {"header:ann", "uid:0", "ann", "", "spiffe://a/*"})
      EXPECT_EQ(flag.store(&config, none).detail()->allowed, flag.allowed + ", without *") << none;
  }
  EXPECT_EQ(config.trusted_proxies.size(), 3u);
}

}  // namespace
}  // namespace tilewire::ops

// Files of credentials: what is wrong with them, and that changes are taken when they are whole.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/identity/credential_files.h"
#include "tests/unit/certificates.h"
#include "tests/unit/jwt.h"

namespace tilewire::rpc {
namespace {

using tilewire::testing::Authority;
using tilewire::testing::CertificateAndKey;
using tilewire::testing::Files;
using tilewire::testing::GoodClaims;
using tilewire::testing::json;
using tilewire::testing::KeySet;
using tilewire::testing::SigningKey;

constexpr const char* kToken =
    "ann 00112233445566778899aabbccddeeff "
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

class CredentialFilesTest : public ::testing::Test {
 protected:
  CredentialFilesTest() {
    Put(first_);
    files_.Write("ca.pem", authority_.pem());
    files_.Write("tokens", kToken);
  }
  void Put(const CertificateAndKey& pair) {
    files_.Write("cert.pem", pair.certificate);
    files_.Write("key.pem", pair.key);
  }
  Result<std::unique_ptr<CredentialFiles>> Open() {
    const CredentialPaths paths{.tls = {.certificate = files_.Path("cert.pem"),
                                        .key = files_.Path("key.pem"),
                                        .client_ca = files_.Path("ca.pem")},
                                .tokens = files_.Path("tokens"),
                                .jwks = with_jwks_ ? files_.Path("jwks.json") : "",
                                .jwt = {.issuer = "https://issuer", .audience = "tilewire"}};
    return CredentialFiles::Open(
        paths, {}, [this](bool good, std::string_view text) { told_.emplace_back(good, text); });
  }
  /// What is wrong, to be told at the start.
  std::string Complaint() {
    const auto opened = Open();
    return opened ? "" : std::string(opened.error().message());
  }
  using Told = std::vector<std::pair<bool, std::string>>;
  Told TakeTold() { return std::exchange(told_, {}); }

  const Files files_;
  const Authority authority_{"authority"};
  const CertificateAndKey first_ = authority_.Issue({.common_name = "first"}),
                          second_ = authority_.Issue({.common_name = "second"});
  bool with_jwks_ = false;
  Told told_;
};

TEST_F(CredentialFilesTest, WhatIsWrongAtTheStartIsNamed) {
  EXPECT_EQ(Complaint(), "");
  files_.Write("cert.pem", second_.certificate);
  EXPECT_EQ(Complaint(), "--tls-key is " + files_.Path("key.pem") +
                             ", which is not the key of the first certificate in --tls-cert, " +
                             files_.Path("cert.pem"));
  files_.Write("cert.pem", "nothing\n");
  EXPECT_EQ(Complaint(), "--tls-cert is " + files_.Path("cert.pem") + ", which has no certificate in PEM");
  const std::string two = first_.certificate + second_.certificate;
  files_.Write("cert.pem", two.substr(0, two.size() - 60));
  EXPECT_EQ(Complaint(),
            "--tls-cert is " + files_.Path("cert.pem") + ", which has a certificate that cannot be read");
  Put({two, first_.key.substr(0, first_.key.size() / 2)});
  EXPECT_EQ(Complaint(), "--tls-key is " + files_.Path("key.pem") +
                             ", which has no private key in PEM without a passphrase");
  Put(first_);
  files_.Write("ca.pem", "");
  EXPECT_EQ(Complaint(), "--tls-client-ca is " + files_.Path("ca.pem") + ", which has no certificate in PEM");
  files_.Write("ca.pem", authority_.pem());
  files_.Write("tokens", std::string(kToken) + "bob\n");
  EXPECT_EQ(Complaint(), "--tokens is " + files_.Path("tokens") +
                             ", line 2: NAME SALT SHA256 and perhaps EXPIRES must stand there");
  std::filesystem::remove(files_.Path("tokens"));
  EXPECT_EQ(Complaint(),
            "--tokens is " + files_.Path("tokens") + ", which cannot be read: No such file or directory");
}

TEST_F(CredentialFilesTest, APairIsTakenWhenItIsWhole) {
  const auto files = Open().value();
  const auto before = files->tls();
  EXPECT_EQ(before->certificate, first_.certificate);
  files->Look();
  EXPECT_EQ(files->tls(), before) << "nothing is new";
  EXPECT_EQ(TakeTold(), Told());

  files_.Write("cert.pem", second_.certificate.substr(0, 100));
  files->Look();
  EXPECT_EQ(files->tls(), before);
  files_.Write("cert.pem", second_.certificate);
  files->Look();
  files->Look();
  EXPECT_EQ(files->tls(), before) << "its key has not come yet";
  const Told wrong = TakeTold();
  ASSERT_EQ(wrong.size(), 2u) << "each state is told of once";
  EXPECT_FALSE(wrong[0].first || wrong[1].first);
  EXPECT_EQ(wrong[1].second.find("certificates have changed and cannot be used, so the old ones stay: "), 0u);
  EXPECT_EQ(wrong[1].second.find("PRIVATE KEY"), std::string::npos);

  files_.Write("key.pem", second_.key);
  files->Look();
  EXPECT_EQ(files->tls()->certificate, second_.certificate);
  EXPECT_EQ(TakeTold(), (Told{{true, "new certificates are used"}}));
  EXPECT_EQ(before->key, first_.key) << "whoever has the old ones keeps them";
}

TEST_F(CredentialFilesTest, WhatVanishesStaysUntilThereIsSomethingElse) {
  const auto files = Open().value();
  const auto before = files->tls();
  std::filesystem::remove(files_.Path("key.pem"));
  files->Look();
  files->Look();
  EXPECT_EQ(files->tls(), before);
  EXPECT_EQ(TakeTold().size(), 1u);
  files_.Replace("key.pem", first_.key);
  files->Look();
  EXPECT_EQ(TakeTold(), (Told{{true, "new certificates are used"}}));
}

TEST_F(CredentialFilesTest, TokensAreRefusedWhole) {
  const auto files = Open().value();
  const auto before = files->for_calls()->tokens;
  EXPECT_EQ(before->size(), 1u);
  files_.Write("tokens", "bob" + std::string(kToken).substr(3) + "what is this\n");
  files->Look();
  EXPECT_EQ(files->for_calls()->tokens, before);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_FALSE(told_[0].first);
  EXPECT_NE(told_[0].second.find("line 2"), std::string::npos) << told_[0].second;
  TakeTold();
  files_.Write("tokens", "");
  files->Look();
  EXPECT_EQ(files->for_calls()->tokens->size(), 0u) << "all are taken back";
  EXPECT_EQ(TakeTold(), (Told{{true, "new tokens are used"}}));
}

TEST_F(CredentialFilesTest, KeysOfTokensAreRefusedWhole) {
  const SigningKey first = SigningKey::Ec(), second = SigningKey::Ed();
  const auto sign = [](const SigningKey& key, const std::string& kid) {
    return key.Sign({{"alg", key.algorithm()}, {"kid", kid}}, GoodClaims("ann"));
  };
  with_jwks_ = true;
  EXPECT_EQ(Complaint(),
            "--jwks is " + files_.Path("jwks.json") + ", which cannot be read: No such file or directory");
  files_.Write("jwks.json", KeySet({first.Jwk("1"), first.Jwk("1")}));
  EXPECT_EQ(Complaint(), "--jwks is " + files_.Path("jwks.json") +
                             ", keys[1].kid is another key's, too; allowed: one for each");
  files_.Write("jwks.json", KeySet({first.Jwk("1")}));
  const auto files = Open().value();
  const auto before = files->for_calls()->jwks;
  const WallTime now = std::chrono::system_clock::now();
  EXPECT_EQ(before->Check(sign(first, "1"), now), "ann");
  json secret = second.Jwk("2");
  secret["d"] = "c2VjcmV0LW9mLXNvbWVib2R5";
  files_.Write("jwks.json", KeySet({first.Jwk("1"), secret}));
  files->Look();
  files->Look();
  EXPECT_EQ(files->for_calls()->jwks, before);
  const Told wrong = TakeTold();
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_FALSE(wrong[0].first);
  EXPECT_NE(wrong[0].second.find("keys[1] is a private key"), std::string::npos) << wrong[0].second;
  EXPECT_EQ(wrong[0].second.find("c2Vj"), std::string::npos) << "no secret is told";
  files_.Replace("jwks.json", KeySet({second.Jwk("2")}));
  files->Look();
  EXPECT_EQ(TakeTold(), (Told{{true, "new keys of --jwks are used"}}));
  EXPECT_EQ(files->for_calls()->jwks->Check(sign(second, "2"), now), "ann");
  EXPECT_FALSE(files->for_calls()->jwks->Check(sign(first, "1"), now)) << "though it was good before";
}

/// At the start, and when there is something new.
TEST_F(CredentialFilesTest, DoubtsAreTold) {
  const auto files = Open().value();
  EXPECT_TRUE(files->Doubts(std::chrono::system_clock::now()).empty());
  const auto ends = files->Doubts(std::chrono::system_clock::now() + std::chrono::hours(24 * 365 * 100));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(ends[0].starts_with("--tls-cert is " + files_.Path("cert.pem") +
                                  ", whose certificate was good until 2"))
      << ends[0];
  const auto early = files->Doubts({});
  ASSERT_EQ(early.size(), 1u);
  EXPECT_NE(early[0].find("whose certificate is good from 2"), std::string::npos) << early[0];

  Put(authority_.Issue({.common_name = "late", .expired = true}));
  files->Look();
  const Told told = TakeTold();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], std::pair(true, std::string("new certificates are used")));
  EXPECT_NE(told[1].second.find("was good until"), std::string::npos) << told[1].second;
  EXPECT_FALSE(told[1].first);
  files->Look();
  EXPECT_TRUE(TakeTold().empty()) << "once";
}

TEST_F(CredentialFilesTest, WhatTlsDoesNotTakeIsNoCertificate) {
  Put(authority_.Issue({.common_name = "weak", .weak = true}));
  EXPECT_NE(Complaint().find("which TLS does not take: "), std::string::npos) << Complaint();
  Put(first_);
  const auto files = Open().value();
  Put(authority_.Issue({.common_name = "weak", .weak = true}));
  files->Look();
  EXPECT_EQ(files->tls()->certificate, first_.certificate);
  EXPECT_FALSE(TakeTold().back().first);
  Put(first_);
  // Those behind the first are looked at, too.
  files_.Write("cert.pem",
               first_.certificate + authority_.Issue({.common_name = "w", .weak = true}).certificate);
  EXPECT_NE(Complaint().find("which TLS does not take: "), std::string::npos) << Complaint();
}

TEST_F(CredentialFilesTest, ACertificateWithoutAnEndHasNone) {
  EXPECT_EQ(EndOfCertificate(authority_.Issue({.common_name = "x", .endless = true}).certificate),
            std::chrono::system_clock::time_point::max());
  EXPECT_EQ(EndOfCertificate("none"), std::nullopt);
}

/// Which would be waited for.
TEST_F(CredentialFilesTest, APipeIsNoFile) {
  const auto files = Open().value();
  const std::string path = files_.Path("tokens");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  files->Look();
  const Told told = TakeTold();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].second.find("which is no file"), std::string::npos) << told[0].second;
  EXPECT_NE(Complaint().find("which is no file"), std::string::npos) << Complaint();
}

TEST_F(CredentialFilesTest, WhatCannotBeUsedAndUntilWhenTheCertificateCanIsTold) {
  const auto files = Open().value();
  std::vector<CredentialState> states;
  files->Start([&](const CredentialState& state) { states.push_back(state); });
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].refused, 0);
  ASSERT_TRUE(states[0].certificate_ends);
  EXPECT_GT(*states[0].certificate_ends, std::chrono::system_clock::now());
  const auto refused_after = [&](const char* name, const std::string& text) {
    files_.Write(name, text);
    files->Look();
    files->Look();  // what is told already is not told again
    return states.back().refused;
  };
  EXPECT_EQ(refused_after("tokens", "ann"), 1);
  EXPECT_EQ(refused_after("key.pem", second_.key), 2);
  EXPECT_EQ(refused_after("tokens", kToken), 1);
  EXPECT_EQ(refused_after("key.pem", first_.key), 0);
  EXPECT_EQ(states.size(), 5u);
  Put(authority_.Issue({.common_name = "late", .expired = true}));
  files->Look();
  EXPECT_LT(*states.back().certificate_ends, std::chrono::system_clock::now());
  EXPECT_EQ(states.back().refused, 0);
}

TEST(CredentialFiles, WithoutPathsThereIsNothing) {
  const auto files = CredentialFiles::Open({}, {}, [](bool, std::string_view) { FAIL(); }).value();
  files->Start([](const CredentialState&) { FAIL(); });
  files->Look();
  EXPECT_FALSE(files->has_tls());
  EXPECT_EQ(files->tls(), nullptr);
  EXPECT_EQ(files->for_calls()->tokens, nullptr);
  EXPECT_EQ(files->for_calls()->jwks, nullptr);
  EXPECT_EQ(files->for_calls()->policy, nullptr);
}

}  // namespace
}  // namespace tilewire::rpc

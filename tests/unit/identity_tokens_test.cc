// The file of tokens: what it may say, and what is good when.
#include "server/rpc/identity/tokens.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/identity/last_token.h"

namespace tilewire::rpc {
namespace {

constexpr char kSalt[] = "0123456789abcdef";
constexpr char kSecret[] = "secret";

std::string Hex(const Sha256& hash) {
  std::string text;
  for (const uint8_t byte : hash) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string Line(const std::string& name, const std::string& more = "") {
  return name + " " + kSalt + " " + Hex(Sha256Of(kSalt, kSecret)) + more + "\n";
}

TEST(Sha256, IsThatOfTheStandard) {
  // FIPS 180-2, appendix B.1.
  const char* const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(Hex(Sha256Of("abc", "")), abc);
  EXPECT_EQ(Hex(Sha256Of("a", "bc")), abc);
}

TEST(Tokens, CommentsBlanksAndNoLastNewline) {
  std::string text = "# the machines\n\n \t\r\n  # and people\n" + Line("ann") + Line("b-2_C");
  text.pop_back();
  const auto tokens = Tokens::Parse(text);
  ASSERT_TRUE(tokens) << tokens.error().ToString();
  EXPECT_EQ(tokens->size(), 2u);
  EXPECT_EQ(tokens->Check("ann.secret", {}), "ann");
  EXPECT_EQ(tokens->Check("b-2_C.secret", {}), "b-2_C");
  EXPECT_EQ(Tokens::Parse("")->size(), 0u);
  EXPECT_FALSE(Tokens::Parse("")->Check("ann.secret", {}));
}

TEST(Tokens, SecretsMayHaveDots) {
  const auto tokens =
      Tokens::Parse(std::string("ann ") + kSalt + " " + Hex(Sha256Of(kSalt, "a.b")) + "\n").value();
  EXPECT_TRUE(tokens.Check("ann.a.b", {}));
  EXPECT_FALSE(tokens.Check("ann.a", {}));
}

TEST(Tokens, WhatWasFoundRightOnceIsStillTheOnlyRightOne) {
  const auto tokens = Tokens::Parse(Line("ann") + Line("bob", " 2027-02-28T23:59:59Z")).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(tokens.Check("ann.secret", {}), "ann");
    for (const std::string wrong :
         {"ann.secreT", "ann.secre", "ann.secret2", "ann.", "ann", "eve.secret", ".secret"})
      EXPECT_FALSE(tokens.Check(wrong, {})) << wrong;
    EXPECT_EQ(tokens.Check("bob.secret", {}), "bob");
    EXPECT_EQ(tokens.Check("bob.secret", WallTime::max()).error().detail()->value, "expired");
    EXPECT_EQ(tokens.Check("bob.secreT", WallTime::max()).error().detail()->value, "unknown");
  }
  const Tokens unknown = Tokens::Parse(Line("ann")).value();
  for (size_t bytes = 0; bytes < 70; ++bytes)
    for (const char c : {'.', 'k', '\0'})
      EXPECT_FALSE(unknown.Check("ann." + std::string(bytes, c), {})) << "what stands for no secret is none";
}

/// The old token and the new one, until the old line goes: neither is the other's, nor takes its expiry.
TEST(Tokens, ANameMayHaveTwo) {
  const std::string other = std::string("ann ") + kSalt + " " + Hex(Sha256Of(kSalt, "other")) + "\n";
  const WallTime late = WallTime::max();
  for (const std::string& both :
       {Line("ann", " 2027-02-28T23:59:59Z") + other, other + Line("ann", " 2027-02-28T23:59:59Z")}) {
    const auto tokens = Tokens::Parse(both + Line("bob")).value();
    EXPECT_EQ(tokens.size(), 2u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(tokens.Check("ann.secret", {}), "ann");
      EXPECT_EQ(tokens.Check("ann.other", {}), "ann");
      EXPECT_EQ(tokens.Check("ann.other", late), "ann");
      EXPECT_EQ(tokens.Check("ann.secret", late).error().detail()->value, "expired");
      EXPECT_FALSE(tokens.Check("ann.othe", {}));
      EXPECT_FALSE(tokens.Check("bob.other", {}));
    }
  }
}

TEST(Tokens, TheExpiryIsTheFirstSecondOut) {
  const auto tokens = Tokens::Parse(Line("ann", " 2027-02-28T23:59:59Z")).value();
  const WallTime end = std::chrono::sys_days(std::chrono::year(2027) / 3 / 1) - std::chrono::seconds(1);
  EXPECT_TRUE(tokens.Check("ann.secret", end - std::chrono::nanoseconds(1)));
  const auto late = tokens.Check("ann.secret", end);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().detail()->value, "expired");
}

TEST(Tokens, MistakesAreNamedWithTheirLine) {
  const std::string hash(64, 'a');
  const std::vector<std::pair<std::string, std::string>> all{
      {"ann", "line 2: NAME SALT SHA256"},
      {"ann 0123456789abcdef", "line 2: NAME SALT SHA256"},
      {"ann 0123456789abcdef " + hash + " 2027-01-01T00:00:00Z more", "line 2: NAME SALT SHA256"},
      {"a.n 0123456789abcdef " + hash, "line 2: the name"},
      {std::string(129, 'n') + " 0123456789abcdef " + hash, "line 2: the name"},
      {"ann 0123456789abcde " + hash, "line 2: the salt"},
      {"ann 0123456789abcdeg " + hash, "line 2: the salt"},
      {"ann 0123456789abcdef " + hash + "a", "line 2: the hash"},
      {"ann 0123456789abcdef " + std::string(64, 'g'), "line 2: the hash"},
      {"ann 0123456789abcdef " + hash + " 2027-02-29T00:00:00Z", "line 2: the expiry"},
      {"ann 0123456789abcdef " + hash + " 2027-01-01T24:00:00Z", "line 2: the expiry"},
      {"ann 0123456789abcdef " + hash + " 2027-01-01 00:00:00Z", "line 2: NAME SALT SHA256"},
      {"ann 0123456789abcdef " + hash + " 2027-01-01T00:00:00+01:00", "line 2: the expiry"},
      {Line("bob") + Line("bob"), "line 3: bob is there a third time"}};
  for (const auto& [line, told] : all) {
    const auto tokens = Tokens::Parse(Line("bob") + line);
    ASSERT_FALSE(tokens) << line;
    EXPECT_TRUE(tokens.error().message().starts_with(told)) << tokens.error().message();
    EXPECT_EQ(tokens.error().message().find(hash), std::string_view::npos);
  }
}

/// Also where a right one is known, and is compared with.
TEST(Tokens, EachCharacterOfASecretCounts) {
  for (const size_t size : {1, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 48, 49}) {
    const std::string secret(size, 'k');
    const auto tokens =
        Tokens::Parse(std::string("ann ") + kSalt + " " + Hex(Sha256Of(kSalt, secret)) + "\n").value();
    for (int known = 0; known < 2; ++known) {
      ASSERT_TRUE(tokens.Check("ann." + secret, {}));
      for (size_t i = 0; i < size; ++i)
        for (const int bit : {1, 2, 32}) {
          std::string wrong = secret;
          wrong[i] = static_cast<char>(wrong[i] ^ bit);
          ASSERT_FALSE(tokens.Check("ann." + wrong, {})) << i << " of " << size;
        }
      ASSERT_FALSE(tokens.Check("ann." + secret + "k", {}));
    }
  }
}

TEST(LastToken, NamesWhoBroughtJustThatOfThatReadingAndNobodyElse) {
  const auto never = [] { return WallTime::max(); };
  const Tokens tokens = Tokens::Parse(Line("ann")).value(), again = Tokens::Parse(Line("ann")).value();
  LastToken last;
  EXPECT_EQ(last.Names(tokens, "", never), nullptr);
  ASSERT_TRUE(tokens.Check("ann.secret", {}) && again.Check("ann.secret", {}));
  last.Set(tokens, "Bearer ann.secret", "token:ann");
  ASSERT_NE(last.Names(tokens, "Bearer ann.secret", never), nullptr);
  EXPECT_EQ(*last.Names(tokens, "Bearer ann.secret", never), "token:ann");
  EXPECT_EQ(last.Names(again, "Bearer ann.secret", never), nullptr) << "it may have been taken back";
  for (const char* const other :
       {"", "Bearer ann.secreT", "Bearer ann.secret2", "Bearer ann.secre", "Bearer ann.secret ",
        "bearer ann.secret", "ann.secret", "Bearer ann.", "Bearer bob.secret", "Bearer ann"})
    EXPECT_EQ(last.Names(tokens, other, never), nullptr) << other;
  for (const char* const wrong : {"Bearer bob.secret", "Bearer ann.secreT", "Bearer ann", "x", ""}) {
    last.Set(tokens, "Bearer ann.secret", "token:ann");
    last.Set(again, wrong, "token:bob");  // only ever one
    EXPECT_EQ(last.Names(tokens, "Bearer ann.secret", never), nullptr);
    EXPECT_EQ(last.Names(again, wrong, never), nullptr) << "one that nobody found right";
  }
}

TEST(LastToken, IsForgottenWithItsFile) {
  LastToken last;
  {
    const Tokens tokens = Tokens::Parse(Line("ann")).value();
    ASSERT_TRUE(tokens.Check("ann.secret", {}));
    last.Set(tokens, "Bearer ann.secret", "token:ann");
  }
  for (int i = 0; i < 20; ++i) {  // perhaps where the other one was
    const auto tokens = std::make_unique<Tokens>(Tokens::Parse(Line("bob")).value());
    ASSERT_TRUE(tokens->Check("bob.secret", {}));
    EXPECT_EQ(last.Names(*tokens, "Bearer ann.secret", [] { return WallTime(); }), nullptr);
  }
}

TEST(LastToken, IsGoodNoLongerThanTheToken) {
  const Tokens tokens = Tokens::Parse(Line("ann", " 1970-01-01T00:00:10Z")).value();
  ASSERT_TRUE(tokens.Check("ann.secret", {}));
  LastToken last;
  last.Set(tokens, "Bearer ann.secret", "token:ann");
  const auto names = [&](WallClock now) { return last.Names(tokens, "Bearer ann.secret", now) != nullptr; };
  EXPECT_TRUE(names([] { return WallTime(std::chrono::seconds(10)) - WallTime::duration(1); }));
  EXPECT_FALSE(names([] { return WallTime(std::chrono::seconds(10)); }));
}

/// Of a name's two tokens, whichever is brought.
TEST(LastToken, OneOfTwoIsNotTheOther) {
  const std::string other = std::string("ann ") + kSalt + " " + Hex(Sha256Of(kSalt, "sEcret")) + "\n";
  const Tokens tokens = Tokens::Parse(Line("ann", " 1970-01-01T00:00:10Z") + other).value();
  ASSERT_TRUE(tokens.Check("ann.secret", {}) && tokens.Check("ann.sEcret", {}));
  const auto late = [] { return WallTime(std::chrono::seconds(11)); };
  LastToken last;
  last.Set(tokens, "Bearer ann.sEcret", "token:ann");
  EXPECT_NE(last.Names(tokens, "Bearer ann.sEcret", late), nullptr);
  EXPECT_EQ(last.Names(tokens, "Bearer ann.secret", [] { return WallTime(); }), nullptr);
  last.Set(tokens, "Bearer ann.secret", "token:ann");
  EXPECT_EQ(last.Names(tokens, "Bearer ann.secret", late), nullptr);
}

TEST(LastTokens, OfTheSameNameAreOne) {
  LastTokens last;
  EXPECT_EQ(&last.Of("Bearer ann.secret"), &last.Of("Bearer ann.other"));
  std::set<LastToken*> places;
  for (int i = 0; i < 200; ++i) places.insert(&last.Of("Bearer " + std::to_string(i) + "-client.secret"));
  EXPECT_GT(places.size(), 32u);
  for (const char* const odd : {"", ".", "x", "x.", "Bearer", "Bearer \xff\xff.x"}) (void)last.Of(odd);
}

TEST(MakeToken, IsGoodUntilItExpires) {
  const NewToken made = MakeToken("ann", "", {}).value(),
                 other = MakeToken("ann", "2027-01-31T12:00:00Z", {}).value();
  EXPECT_NE(made.token, other.token);
  EXPECT_EQ(made.token.size(), 4 + 24u);
  EXPECT_EQ(made.line.find(made.token.substr(4)), std::string::npos) << "the line does not tell the token";
  EXPECT_EQ(Tokens::Parse(made.line + "\n")->Check(made.token, WallTime::max()), "ann");
  EXPECT_FALSE(Tokens::Parse(made.line)->Check(other.token, {}));
  const Tokens tokens = Tokens::Parse(other.line).value();
  EXPECT_EQ(tokens.Check(other.token, {}), "ann");
  EXPECT_FALSE(tokens.Check(other.token, WallTime::max()));
}

TEST(MakeToken, NamesThatCannotStandInTheFileAreRefused) {
  for (const std::string name : {"", "#ann", "a b", "a.b", "ann\n", "x y z"})
    EXPECT_FALSE(MakeToken(name, "", {})) << name;
  for (const std::string expires : {"tomorrow", "2027-01-31", "2027-13-31T12:00:00Z"})
    EXPECT_FALSE(MakeToken("ann", expires, {})) << expires;
  const WallTime end = std::chrono::sys_days(std::chrono::year(2027) / 1 / 31) + std::chrono::hours(12);
  EXPECT_TRUE(MakeToken("ann", "2027-01-31T12:00:00Z", end - std::chrono::seconds(1)));
  EXPECT_EQ(MakeToken("ann", "2027-01-31T12:00:00Z", end).error().message(),
            "the expiry is 2027-01-31T12:00:00Z, which is over");
}

}  // namespace
}  // namespace tilewire::rpc

#include "server/rpc/identity/tokens.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "server/rpc/identity/identity.h"

namespace tilewire::rpc {
namespace {

constexpr size_t kMinSaltDigits = 16, kMaxSaltDigits = 64, kMaxNameBytes = 128;
constexpr size_t kMostLines = 2;  // of a name
constexpr size_t kNewSaltBytes = 16;
constexpr size_t kNewSecretBytes = 18, kNewSecretDigits = 24;
constexpr std::string_view kBlanks = " \t\r";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return HexDigit(c) >= 0; });
}

/// Names have no dot, which ends them in a token.
bool IsTokenName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == line.npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// Digits of `text` at [begin, begin + count), or -1.
int Number(std::string_view text, size_t begin, size_t count) {
  int value = -1;
  const char* const end = text.data() + begin + count;
  const auto [stop, error] = std::from_chars(text.data() + begin, end, value);
  return error == std::errc() && stop == end ? value : -1;
}

std::optional<WallTime> ParseTime(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year(Number(text, 0, 4)),
                                        std::chrono::month(static_cast<unsigned>(Number(text, 5, 2))),
                                        std::chrono::day(static_cast<unsigned>(Number(text, 8, 2)))};
  const int hour = Number(text, 11, 2), minute = Number(text, 14, 2), second = Number(text, 17, 2);
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return std::chrono::sys_days(day) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

template <typename Bytes>
std::string Hex(const Bytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Whether so many bytes are the same, in a time that does not depend on how many of them are. In pieces,
/// since the library has a quicker way for sixteen bytes than for others; the last one begins earlier.
bool SameInAllBytes(const void* one, const void* other, size_t bytes) {
  constexpr size_t kPiece = 16;
  const auto differ = [&](size_t at, size_t count) {
    return CRYPTO_memcmp(static_cast<const char*>(one) + at, static_cast<const char*>(other) + at, count);
  };
  if (bytes < kPiece) return differ(0, bytes) == 0;
  int all = differ(bytes - kPiece, kPiece);
  for (size_t at = 0; at + kPiece < bytes; at += kPiece) all |= differ(at, kPiece);
  return all == 0;
}

tl::unexpected<Status> Refused(std::string_view why) {
  return Unauthenticated("authorization", why, "Bearer NAME.SECRET of a token that the server knows",
                         "the token is " + std::string(why));
}

}  // namespace

Sha256 Sha256Of(std::string_view first, std::string_view second) {
  // Fetched once: looking an algorithm up takes longer than hashing a token.
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  // Kept, as making one takes longer than hashing too; its end wipes what it was given.
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                                     &EVP_MD_CTX_free);
  Sha256 hash{};
  unsigned bytes = 0;
  const bool good = sha256 != nullptr && context && EVP_DigestInit_ex(context.get(), sha256, nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), first.data(), first.size()) == 1 &&
                    EVP_DigestUpdate(context.get(), second.data(), second.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), hash.data(), &bytes) == 1 && bytes == hash.size();
  if (!good) std::abort();  // no hash must ever look like one: out of memory, or a library without SHA-256
  return hash;
}

Tokens::Proven::~Proven() {
  const std::unique_ptr<std::string> secret(secret_.load());
  if (secret) OPENSSL_cleanse(secret->data(), secret->size());
}

bool Tokens::Proven::Is(std::string_view secret) const {
  const std::string* const known = secret_.load(std::memory_order_acquire);
  // What is not known, or not as long, is compared with itself, so that it takes as long.
  const bool comparable = known != nullptr && known->size() == secret.size();
  const bool same = SameInAllBytes(secret.data(), comparable ? known->data() : secret.data(), secret.size());
  return comparable && same;
}

void Tokens::Proven::Set(std::string_view secret) {
  if (secret_.load(std::memory_order_acquire) != nullptr) return;
  auto made = std::make_unique<std::string>(secret);
  std::string* nothing = nullptr;
  if (secret_.compare_exchange_strong(nothing, made.get(), std::memory_order_acq_rel))
    (void)made.release();
  else
    OPENSSL_cleanse(made->data(), made->size());
}

Result<std::pair<std::string, Tokens::Entry>> Tokens::ParseLine(std::string_view line) {
  const auto bad = [](std::string_view what) {
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE", what));
  };
  const std::vector<std::string_view> words = Words(line);
  if (words.size() < 3 || words.size() > 4)
    return bad("NAME SALT SHA256 and perhaps EXPIRES must stand there");
  if (!IsTokenName(words[0])) return bad("the name must be 1 to 128 letters, digits, '-' and '_'");
  if (words[1].size() < kMinSaltDigits || words[1].size() > kMaxSaltDigits || !IsHex(words[1]))
    return bad("the salt must be 16 to 64 hexadecimal digits");
  Entry entry{.salt = std::string(words[1])};
  if (words[2].size() != 2 * entry.hash.size() || !IsHex(words[2]))
    return bad("the hash must be 64 hexadecimal digits");
  for (size_t i = 0; i < entry.hash.size(); ++i)
    entry.hash[i] = static_cast<uint8_t>(HexDigit(words[2][2 * i]) * 16 + HexDigit(words[2][2 * i + 1]));
  if (words.size() == 4 && !(entry.expires = ParseTime(words[3])))
    return bad("the expiry must be a time in UTC such as 2027-01-31T12:00:00Z");
  return std::pair(std::string(words[0]), std::move(entry));
}

Result<Tokens> Tokens::Parse(std::string_view text) {
  Tokens tokens;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == line.npos || line[begin] == '#') continue;
    auto parsed = ParseLine(line);
    const std::string where = "line " + std::to_string(number) + ": ";
    if (!parsed)
      return Fail(Status(Code::kInvalidArgument, "BAD_VALUE", where + std::string(parsed.error().message())));
    auto& [name, entry] = *parsed;
    std::vector<Entry>& entries = tokens.by_name_[name];
    if (entries.size() == kMostLines)
      return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                         where + name + " is there a third time; a name has two lines at most"));
    entries.push_back(std::move(entry));
  }
  return tokens;
}

Result<std::string> Tokens::Check(std::string_view token, WallTime now) const {
  // Whoever is wrong and has no line, or no second one, takes as long as who has both.
  static const Entry nobody{.salt = std::string(kMinSaltDigits, '0')};
  const size_t dot = token.find('.');
  const bool formed = dot != token.npos && dot + 1 < token.size();
  const auto found = formed ? by_name_.find(token.substr(0, dot)) : by_name_.end();
  const size_t lines = found == by_name_.end() ? 0 : found->second.size();
  const std::string_view secret = formed ? token.substr(dot + 1) : token;
  const auto entry = [&](size_t i) -> const Entry& { return i < lines ? found->second[i] : nobody; };

  const Entry* right = nullptr;
  for (size_t i = 0; i < kMostLines && right == nullptr; ++i)  // which of two is right is no secret to him
    if (entry(i).proven->Is(secret)) right = &entry(i);
  if (right == nullptr) {
    for (size_t i = 0; i < kMostLines; ++i) {
      const Sha256 hash = Sha256Of(entry(i).salt, secret);
      const bool same = SameInAllBytes(hash.data(), entry(i).hash.data(), hash.size());
      if (same && i < lines) right = &entry(i);
    }
    if (right == nullptr) return Refused("unknown");
  }
  if (right->expires && now >= *right->expires) return Refused("expired");
  right->proven->Set(secret);
  return found->first;
}

Tokens::Known Tokens::Remember(std::string_view token) const {
  Known known;
  const size_t dot = token.find('.');
  const auto found = dot == token.npos ? by_name_.end() : by_name_.find(token.substr(0, dot));
  if (found == by_name_.end()) return known;
  for (const Entry& entry : found->second)
    if (known.entry_ == nullptr && entry.proven->Is(token.substr(dot + 1))) known.entry_ = &entry;
  known.reading_ = reading_;
  return known;
}

bool Tokens::Is(const Known& known, std::string_view secret, WallClock now) const {
  return known.reading_ == reading_ && known.entry_ != nullptr && known.entry_->proven->Is(secret) &&
         (!known.entry_->expires || now() < *known.entry_->expires);
}

uint64_t Tokens::NewReading() {
  static std::atomic<uint64_t> readings{0};
  return readings.fetch_add(1) + 1;
}

std::string RandomHex(size_t bytes) {
  std::vector<uint8_t> random(bytes);
  if (RAND_bytes(random.data(), static_cast<int>(bytes)) != 1) std::abort();  // nothing else is a secret
  return Hex(random);
}

namespace {

/// Random, in base64 as URLs have it: a third shorter than in hexadecimal digits, and each call sends it.
std::string NewSecret() {
  std::array<uint8_t, kNewSecretBytes> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) std::abort();
  std::array<uint8_t, kNewSecretDigits + 1> digits{};  // a NUL is written behind them
  EVP_EncodeBlock(digits.data(), random.data(), random.size());
  std::string secret(digits.begin(), digits.end() - 1);
  std::ranges::replace(secret, '+', '-');
  std::ranges::replace(secret, '/', '_');
  return secret;
}

}  // namespace

Result<NewToken> MakeToken(std::string_view name, std::string_view expires, WallTime now) {
  if (!IsTokenName(name))
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                       "the name must be 1 to 128 letters, digits, '-' and '_'"));
  const std::string salt = RandomHex(kNewSaltBytes), secret = NewSecret();
  NewToken made{.token = std::string(name) + "." + secret,
                .line = std::string(name) + " " + salt + " " + Hex(Sha256Of(salt, secret))};
  if (!expires.empty()) made.line += " " + std::string(expires);
  const auto parsed = Tokens::Parse(made.line);  // the one judge of times
  if (!parsed) return Fail(parsed.error());
  if (!parsed->Check(made.token, now))
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                       "the expiry is " + std::string(expires) + ", which is over"));
  return made;
}

}  // namespace tilewire::rpc

// Bearer tokens: the operator's file, which has no token in it but salted hashes of their secrets. No gRPC
// here.
//
// A token is NAME.SECRET; the name finds the line, so that a call costs two hashes at most, however many
// tokens there are: a name may have two lines, so that its new token is good before the old one goes. A line
// of the file is
//
//   NAME SALT SHA256 [EXPIRES]
//
// with single words between blanks; `#` begins a comment line. SALT: 16 to 64 hexadecimal digits. SHA256: of
// SALT, as it is written, followed by SECRET; 64 hexadecimal digits. EXPIRES: 2027-01-31T12:00:00Z, the first
// second in which the token is not good any more. One round of SHA-256 is enough for secrets that a machine
// drew (128 bits or more), and for no others.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::rpc {

using Sha256 = std::array<uint8_t, 32>;
using WallTime = std::chrono::system_clock::time_point;
using WallClock = WallTime (*)();

/// One reading of the file. Immutable but for what it remembers to be right; thread-safe.
class Tokens {
  struct Entry;

 public:
  /// Of a file's text. INVALID_ARGUMENT with the number of the first line that is wrong, and never a hash:
  /// a word that is none, a name that is there three times. No lines at all are fine: then no token is good.
  static Result<Tokens> Parse(std::string_view text);

  /// The name that a token stands for. UNAUTHENTICATED `IDENTITY`: unknown, wrong or expired; the message
  /// does not say which but for the last, nor does the time taken. What was found right
  /// once is known again without a hash.
  Result<std::string> Check(std::string_view token, WallTime now) const;

  /// A token that was found right, for who looks for it again. Outlives the file's reading, which alone
  /// knows it.
  class Known {
    friend class Tokens;
    uint64_t reading_ = 0;  ///< of no file
    const Entry* entry_ = nullptr;
  };
  /// Of what Check() found right; of any other token nothing, which Is() never finds.
  Known Remember(std::string_view token) const;
  /// Whether `secret` is still that of a token that is known. `now` is asked for those that expire.
  bool Is(const Known& known, std::string_view secret, WallClock now) const;

  bool Has(std::string_view name) const { return by_name_.contains(name); }
  /// Of names.
  size_t size() const { return by_name_.size(); }

 private:
  /// The secret of one token once it was found right, and until then nothing. Wiped in the end. Thread-safe.
  class Proven {
   public:
    Proven() = default;
    ~Proven();
    Proven(const Proven&) = delete;
    Proven& operator=(const Proven&) = delete;
    bool Is(std::string_view secret) const;
    void Set(std::string_view secret);

   private:
    std::atomic<std::string*> secret_{nullptr};  ///< set once
  };
  struct Entry {
    std::string salt;
    Sha256 hash{};
    std::optional<WallTime> expires;
    std::unique_ptr<Proven> proven = std::make_unique<Proven>();
  };
  static Result<std::pair<std::string, Entry>> ParseLine(std::string_view line);

  static uint64_t NewReading();

  uint64_t reading_ = NewReading();  ///< tells it from all others of the process
  std::map<std::string, std::vector<Entry>, std::less<>> by_name_;  ///< one or two each
};

/// What `tilewired --make-token` gives.
struct NewToken {
  std::string token;  ///< for the client, and to be found nowhere else: NAME.SECRET, 144 bits of it random
  std::string line;   ///< for the file
};

/// `expires`: as in the file; empty: never. INVALID_ARGUMENT where the name or the time cannot stand there,
/// or the time is over `now`.
Result<NewToken> MakeToken(std::string_view name, std::string_view expires, WallTime now);

/// That many random bytes in hexadecimal digits, fit for secrets. Thread-safe.
std::string RandomHex(size_t bytes);

/// SHA-256 of one text after the other.
Sha256 Sha256Of(std::string_view first, std::string_view second);

}  // namespace tilewire::rpc

// What is known of one connection beside its bytes: what calls told of it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "server/rpc/listener/connection_use.h"
#include "server/rpc/listener/turn.h"

namespace tilewire::rpc {

/// Of unary calls: heavy ones are those for bulk jobs and those whose messages are long to read.
enum class Weight : uint8_t { kLight, kHeavy };

/// What a connection may send beside headers and messages.
struct ReadBudget {
  /// Whatever comes of it: a handshake of TLS, settings, some pings.
  static constexpr uint64_t kFewBytes = 64 << 10;
  /// Bytes, for so many that were sent and so many of headers and messages: answers to what is sent are
  /// mostly windows, and are to be less than what answers settings and pings; frames around headers and
  /// messages are more than those where they are of a few bytes.
  static constexpr double Paid(double sent, double carried) {
    constexpr double kPerByteSent = 0.25, kPerByteCarried = 4;
    return kPerByteSent * sent + kPerByteCarried * carried;
  }
};

/// Whether a connection's streams that no thread has taken become too many at once. Those that none ever
/// takes, of health, or refused by gRPC, come little by little. Thread-compatible.
class Untaken {
 public:
  bool MayBe(uint64_t untaken, TimePoint now) {
    constexpr uint64_t kMost = 1024, kLittle = 256;
    usual_ = std::min(usual_, untaken);
    if (untaken - usual_ > kMost) return false;
    if (now - since_ < std::chrono::seconds(1)) return true;
    since_ = now;
    usual_ = std::min(untaken, usual_ + kLittle);
    return true;
  }

 private:
  uint64_t usual_ = 0;
  TimePoint since_{};
};

/// How many streams a connection may begin while others of its peer do, or did, too much: a few, as many each
/// second, and twice as many as come to something meanwhile. Those it had before do not count.
/// Thread-compatible.
class Restraint {
 public:
  /// One more, the `begun`th, of a connection of whose calls `good` have come to something.
  bool MayBegin(uint64_t begun, uint64_t good, TimePoint now) {
    if (!std::exchange(on_, true)) begun_ = begun - 1, good_ = good, since_ = now;
    constexpr uint64_t kFew = 16;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
    return begun - begun_ <=
           2 * (std::max(good, good_) - good_) + kFew * (1 + static_cast<uint64_t>(seconds));
  }
  void Ends() { on_ = false; }

 private:
  bool on_ = false;
  uint64_t begun_ = 0, good_ = 0;  ///< when it began
  TimePoint since_{};
};

/// Counts since the connection came. Thread-safe.
struct ConnectionAccount {
  static constexpr size_t kLineBytes = 64;  ///< of a cache
  // What all calls count is in one line, as they run on all cores; what they read is in the next.
  alignas(kLineBytes) std::atomic<uint64_t> calls{0};  ///< begun
  ConnectionUse use;                                   ///< of what --…-per-connection bound
  std::atomic<uint64_t> message_bytes{0};              ///< of messages that calls took,
  std::atomic<uint64_t> requests{0};       ///< and how many of these there were of unary calls, one of each
  std::atomic<uint32_t> ended{0};          ///< calls, whatever came of them; modulo 2^32
  std::atomic<int16_t> coming{0};          ///< unary calls whose messages are still on their way
  std::atomic<uint8_t> heavy_in_a_row{0};  ///< calls since the last light one
  std::atomic<bool> last_is_bulk{false};   ///< the last call was for a bulk job

  alignas(kLineBytes) std::atomic<double> round_trip_us{-1};  ///< when it came; < 0: nobody measured it
  /// Of unary calls, by Weight (Throttle).
  const std::array<std::shared_ptr<Turn>, 2> turns{std::make_shared<Turn>(), std::make_shared<Turn>()};
  std::atomic<uint64_t> received{0};           ///< bytes, as of when the listener last looked; of TCP alone
  std::atomic<TimePoint> behind{TimePoint{}};  ///< until then messages may have waited in its socket
  std::atomic<int64_t> window{0};        ///< bytes that each of its streams may send unread; 0: a near one
  std::atomic<uint64_t> failed{0};       ///< calls refused, cancelled or unknown; nobody's work was done
  std::atomic<uint64_t> turned_away{0};  ///< unary calls that were refused before their requests were here

  // Whoever reads the connection writes these at each call.
  alignas(kLineBytes) std::atomic<uint64_t> begun{0};  ///< streams that were read, before a thread has them
  std::atomic<uint64_t> carried{0};                    ///< bytes of headers and messages that were read
  Untaken untaken;                                     ///< of these,
  Restraint restraint;                                 ///< and how many may be
  std::atomic<bool> begins_call{true};                 ///< the header whose frame is read just now
  bool seen = false;                                   ///< whether whoever reads says so; before calls come
  std::atomic<bool> restrained{false};                 ///< others of its peer had too many failed calls,
  std::atomic<bool> short_of_frames{false};            ///< or sent too much beside headers and messages
  std::atomic<double> forgiven{0};                     ///< bytes that it had sent until then
  std::atomic<bool> overdrawn{false};                  ///< it did, then, and is read no more
  std::atomic<bool> end_told{false};                   ///< the server ended it; who did it first tells

  /// Calls under way.
  uint64_t open() const {
    const uint32_t over = ended.load(std::memory_order_acquire);  // first: no more than began
    return static_cast<uint32_t>(calls.load(std::memory_order_relaxed)) - over;
  }
  /// Calls that came to something.
  uint64_t good() const {
    const uint64_t bad = failed.load(std::memory_order_relaxed) + open(), all = calls.load();
    return all > bad ? all - bad : 0;
  }
  /// One more is read; by one thread at a time. False: it is too many. Of any connection, that no thread has
  /// taken: it resets them faster, or did while the server stood. Of a restrained one: Restraint.
  bool BeginStream() {
    return BeginStream([] { return Clock::now(); });
  }
  /// `clock` is asked now and then.
  template <typename F>
  bool BeginStream(const F& clock) {
    constexpr uint64_t kAskEvery = 64;
    const uint64_t now = begun.load(std::memory_order_relaxed) + 1;
    begun.store(now, std::memory_order_relaxed);
    // Whoever takes calls writes their number all the time.
    if (now % kAskEvery == 0) {
      const uint64_t taken = calls.load(std::memory_order_relaxed);
      if (!untaken.MayBe(now > taken ? now - taken : 0, clock())) return false;
    }
    if (!restrained.load(std::memory_order_relaxed)) {
      restraint.Ends();
      return true;
    }
    return restraint.MayBegin(now, good(), clock());
  }

  /// Whether the next call is a heavy one, most likely: who has light ones, too, is not to be taken for that.
  bool brings_heavy() const { return heavy_in_a_row.load(std::memory_order_relaxed) >= 8; }
  /// Of the calls whose messages are still on their way those that wait for the server, not for their line:
  /// all of who is that near, or behind.
  int KeptWaiting(TimePoint now) const {
    constexpr double kNearUs = 1000;
    const double us = round_trip_us.load(std::memory_order_relaxed);
    const bool waits = (us >= 0 && us < kNearUs) || now < behind.load(std::memory_order_relaxed);
    return waits ? coming.load(std::memory_order_relaxed) : 0;
  }
  /// Whether more of it is to be read, after so many bytes that came and that were sent.
  bool MayBeRead(uint64_t read_bytes, uint64_t sent_bytes) const {
    const auto paid = ReadBudget::Paid(static_cast<double>(sent_bytes),
                                       static_cast<double>(carried.load(std::memory_order_relaxed)));
    return static_cast<double>(read_bytes) <= paid + forgiven + static_cast<double>(ReadBudget::kFewBytes);
  }
  /// Headers or messages, without the frames around them, are read.
  void Carry(uint64_t bytes) {
    carried.store(carried.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void CountBrought(Weight weight, bool bulk) {
    last_is_bulk.store(bulk, std::memory_order_relaxed);
    if (weight == Weight::kLight)
      heavy_in_a_row.store(0, std::memory_order_relaxed);
    else if (!brings_heavy())
      heavy_in_a_row.fetch_add(1, std::memory_order_relaxed);
  }
};
static_assert(offsetof(ConnectionAccount, last_is_bulk) < ConnectionAccount::kLineBytes);

/// What one connection seems to cost, from its account and the bytes that its socket received. Both sums
/// halve every kHalfLife, so that what is long over counts no more. Thread-compatible.
class Burden {
 public:
  /// `seconds` after the last time.
  void Update(double seconds, uint64_t received_bytes, const ConnectionAccount& account);
  /// Untaken calls do not count: the server stood still.
  void ForgiveUntaken() { untaken_calls_ = 0; }

  /// Bytes that came and that no call took: headers beyond what calls usually have, streams that were reset,
  /// messages on their way.
  double idle_bytes() const { return idle_bytes_; }
  /// Those that no thread has taken yet are likely to be some, where they are more than may be open at once:
  /// half of that is forgotten in a second, as clients may also give up what a server is slow to take.
  double failed_calls() const { return failed_calls_ + std::max(0.0, untaken_calls_ - kOpenAtOnce); }
  /// Once it has ended: what is under way then comes to nothing.
  double left_calls(const ConnectionAccount& account) const {
    return failed_calls_ + untaken_calls_ + static_cast<double>(account.open());
  }

 private:
  static constexpr double kHalfLifeSeconds = 10;
  /// Headers and frames that any call may have for nothing.
  static constexpr double kBytesOfCall = 1024;
  /// Of a message's bytes, for frames.
  static constexpr double kFraming = 1.0 / 256;
  /// Of a request whose call was turned away: what its client may send before it knows.
  static constexpr double kBytesTurnedAway = 128 << 10;
  /// Streams of a connection (transport.cc).
  static constexpr double kOpenAtOnce = 256;
  static constexpr double kUntakenHalfLifeSeconds = 1;

  double idle_bytes_ = 0, failed_calls_ = 0;
  double untaken_calls_ = 0;  ///< and those that none ever takes: of health, or refused by gRPC itself
  uint64_t received_ = 0, calls_ = 0, failed_ = 0, messages_ = 0, turned_away_ = 0,
           begun_ = 0;  ///< as of the last time
};

}  // namespace tilewire::rpc

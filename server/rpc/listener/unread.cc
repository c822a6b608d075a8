#include "server/rpc/listener/unread.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace tilewire::rpc {
namespace {

// Headers and frames of a light call, most of which are an index each after the first.
constexpr double kHeadersBytes = 128;
constexpr double kLightBytes = 64 << 10;
// In a socket: the server is behind with the connection, or was when it was looked at.
constexpr int64_t kMuchBytes = 16 << 10;
// Seconds over which rates are means, and of which calls may lie unread: of heavy ones, and of light ones,
// with which a socket is filled where many connections share a core.
constexpr double kMean = 80e-3, kMost = 0.1, kMostLight = 1;
// A second; whose calls come now and then has none to speak of in his socket.
constexpr double kFew = 20;
// Until what came is forgotten though nobody reads.
constexpr std::chrono::seconds kKept{1};
// Heavy calls on their way that one connection may have though few of its calls begin.
constexpr double kFewComing = 8;
// For which a connection counts as behind where it was.
constexpr std::chrono::milliseconds kBehind{200};

}  // namespace

void RecentCalls::Update(TimePoint now, const ConnectionAccount& account) {
  const auto gained = [](uint64_t* then, uint64_t count) {
    return static_cast<double>(count - std::exchange(*then, count));
  };
  const double seconds = std::chrono::duration<double>(now - std::exchange(then_, now)).count();
  const double calls = gained(&calls_then_, account.calls),
               requests = gained(&requests_then_, account.requests);
  const double bytes = gained(&bytes_then_, account.message_bytes) + calls * kHeadersBytes;
  nothing_came_ = calls == 0 && bytes == 0;
  heavy_ = account.brings_heavy();
  if (!nothing_came_) came_ = now;
  // Which says nothing of what comes where nothing was read: of many connections each is read now and then.
  if (seconds <= 0 || (nothing_came_ && lies_ && now - came_ < kKept && !heavy_)) return;
  // Whoever refuses calls, or ends them before their messages, has not taken what else was read of them.
  const double light_bytes = std::max(bytes, gained(&carried_then_, account.carried));
  const double weight = 1 - std::exp(-seconds / kMean);
  calls_ += (calls / seconds - calls_) * weight;
  requests_ += (requests / seconds - requests_) * weight;
  bytes_ += (bytes / seconds - bytes_) * weight;
  light_bytes_ += (light_bytes / seconds - light_bytes_) * weight;
}

bool RecentCalls::MayBeInAMessage(int64_t unread_bytes) const {
  return nothing_came_ && !heavy_ && unread_bytes >= kMuchBytes;
}

Unread RecentCalls::In(int64_t unread_bytes, ConnectionAccount* account, int64_t read_bytes) {
  const double coming = account->coming.load(std::memory_order_relaxed);
  const bool much = unread_bytes >= kMuchBytes, much_then = std::exchange(much_then_, much);
  if (!MayBeInAMessage(unread_bytes))
    read_then_.reset();
  else if (!read_then_)
    read_then_ = read_bytes;
  const bool in_a_message = read_then_ && static_cast<double>(read_bytes - *read_then_) > kLightBytes;
  lies_ = much && !in_a_message;
  const bool heavy = account->brings_heavy(), behind = !in_a_message && much && (much_then || !heavy);
  if (behind) account->behind.store(then_ + kBehind, std::memory_order_relaxed);
  if (heavy) {
    const bool lately = then_ < account->behind.load(std::memory_order_relaxed);
    // Who opens many that never come has few; who is served has those that are under way.
    const double under_way = std::min(coming, std::max(kFewComing, kMost * calls_));
    return {.heavy = lately ? std::max(Guess(unread_bytes, requests_, bytes_, kMost), under_way) : 0};
  }
  if (in_a_message) return {};  // and so are those on their way
  const double light = GuessLight(unread_bytes);
  return {.light = behind ? std::max(light, coming) : light};
}

double RecentCalls::Guess(int64_t unread_bytes, double calls, double bytes, double most_seconds) const {
  if (bytes <= 0) return 0;
  return std::min(static_cast<double>(unread_bytes) * calls / bytes, most_seconds * calls_);
}

double RecentCalls::GuessLight(int64_t unread_bytes) const {
  if (calls_ < kFew || light_bytes_ > calls_ * kLightBytes) return 0;
  return Guess(unread_bytes, calls_, light_bytes_, kMostLight);
}

}  // namespace tilewire::rpc

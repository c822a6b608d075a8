#include "client/cpp/hold.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/array/busy.h"

namespace tilewire::client {
namespace {

// Whatever a server says: ours ask for half a second at most.
constexpr std::chrono::minutes kLongestHold{1};
constexpr std::array kFields{kSmallCallsWait, kBulkCallsWait};  // [whether bulk]

/// As the server tells jobs apart, as far as the client knows what the call is about.
bool IsBulk(const CallSpec& spec) {
  int64_t bytes = 0;
  for (const ArraySource& source : spec.sources)
    if (source.known_spec()) bytes += source.spec().bytes();
  if (spec.results)
    for (const ArraySpec& result : *spec.results) bytes += result.bytes();
  return bytes > Hold::kSmallBytes;
}

}  // namespace

Status Hold::Refuse(const CallSpec& spec, Clock::time_point now) const {
  const bool bulk = IsBulk(spec);
  const auto until = until_[bulk].load(std::memory_order_relaxed);
  if (until <= now) return {};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = "not sent: the server is behind, and asked this client to hold calls back for " +
                            std::to_string(ms) + " ms more",
                 .field = std::string(kFields[bulk]),
                 .retry_after_ms = ms});
}

void Hold::Learn(const Status& ended, Clock::time_point now) {
  if (ended.code() != Code::kResourceExhausted || ended.reason() != "BUSY") return;
  const Status::Detail& detail = *ended.detail();
  const auto* const field = std::find(kFields.begin(), kFields.end(), detail.field);
  if (field == kFields.end() || detail.retry_after_ms <= 0) return;
  Until& until = until_[static_cast<size_t>(field - kFields.begin())];
  const auto asked = now + std::min<std::chrono::milliseconds>(
                               std::chrono::milliseconds(detail.retry_after_ms), kLongestHold);
  for (auto known = until.load(); known < asked && !until.compare_exchange_weak(known, asked);) {
  }
}

}  // namespace tilewire::client

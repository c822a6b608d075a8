#include "server/engine/stores/owned.h"

#include <algorithm>

namespace tilewire::engine {
namespace {

constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed must stay short
constexpr double kShortestSeconds = 0.001;

std::string BytesFlag(const StoreWords& words, bool own) {
  return std::string(" (--") + words.flags + (own ? "-bytes-per-identity)" : "-bytes)");
}

}  // namespace

Status CheckId(const StoreWords& words, const std::string& id, const std::string& instance,
               const std::string& field) {
  if (id.size() > kLongestId)
    return BadValue(field, std::to_string(id.size()) + " characters",
                    std::string("an id as in ") + words.told_in)
        .value();
  return id.starts_with(instance + "-") ? Status() : NotFound(words, id, field, true);
}

Status NotFound(const StoreWords& words, const std::string& id, const std::string& field, bool foreign) {
  return Status({.code = Code::kNotFound,
                 .reason = foreign ? "WRONG_INSTANCE" : words.reason,
                 .message = foreign ? field + ": " + words.one + " " + id + " is not of this server"
                                    : field + ": you have no " + words.one + " " + id + " here",
                 .field = field,
                 .value = id,
                 .allowed = std::string("the id of ") + words.which + ", yours, and not expired",
                 .unlogged = true});
}

Status CheckSeconds(const StoreWords& words, double seconds, double longest, const std::string& field) {
  if (seconds == 0 || (seconds >= kShortestSeconds && seconds <= longest)) return {};
  return BadValue(field, std::to_string(seconds),
                  "0.001 to " + std::to_string(longest) + " (--longest-" + words.flags + "-seconds)")
      .value();
}

Status CheckQuotas(const StoreWords& words, uint64_t bytes, int64_t most, int64_t most_per_identity,
                   const std::string& field, uint64_t value) {
  for (const bool own : {false, true}) {
    const int64_t limit = own ? most_per_identity : most;
    if (bytes > static_cast<uint64_t>(limit))
      return OverLimit(field, std::to_string(value),
                       "at most " + std::to_string(limit) + BytesFlag(words, own))
          .value();
  }
  return {};
}

Status QuotaFull(const StoreWords& words, int64_t held, int64_t bytes, int64_t most, bool own) {
  return Busy((own ? "your " : "all ") + std::string(words.several) + " take " + std::to_string(held) +
                  " bytes and this one " + std::to_string(bytes) + "; allowed: " + std::to_string(most) +
                  BytesFlag(words, own),
              kStoreRetryMs);
}

int64_t MostOfOne(const std::string& identity, int64_t most) {
  return identity == "anonymous" ? most : std::max<int64_t>(1, most / 2);
}

Status TooMany(const StoreWords& words, size_t there, int64_t most, bool own) {
  return Busy(std::to_string(there) + (own ? " of your " : " ") + words.several + " are " + words.are +
                  "; allowed: " + std::to_string(most) +
                  (own ? std::string(" (--") + words.several + "-per-identity)" : ""),
              kStoreRetryMs);
}

}  // namespace tilewire::engine

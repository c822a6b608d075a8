#include "server/engine/stores/owned.h"

#include <algorithm>

namespace tilewire::engine {
namespace {

constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed must stay short
constexpr double kShortestSeconds = 0.001;

std::string BytesFlag(const StoreWords& words) {
  return std::string(" (--") + words.flags + "-bytes)";
}
std::string OwnBytesFlag(const StoreWords& words, bool by_rule) {
  return by_rule ? std::string(" (") + words.bytes_key + " in --policy)"
                 : std::string(" (--") + words.flags + "-bytes-per-identity)";
}
std::string Full(const StoreWords& words, int64_t held, int64_t bytes, int64_t most) {
  return std::string(words.several) + " take " + std::to_string(held) + " bytes and this one " +
         std::to_string(bytes) + "; allowed: " + std::to_string(most);
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

Status CheckQuotas(const StoreWords& words, uint64_t bytes, int64_t most, const OwnMost& own,
                   const std::string& field, uint64_t value) {
  const auto over = [&](int64_t limit, const std::string& said) {
    return OverLimit(field, std::to_string(value), "at most " + std::to_string(limit) + said).value();
  };
  if (bytes > static_cast<uint64_t>(most)) return over(most, BytesFlag(words));
  if (bytes > static_cast<uint64_t>(own.most)) return over(own.most, OwnBytesFlag(words, own.by_rule));
  return {};
}

Status QuotaFull(const StoreWords& words, int64_t held, int64_t bytes, int64_t most) {
  return Busy("all " + Full(words, held, bytes, most) + BytesFlag(words), kStoreRetryMs);
}

Status OwnQuotaFull(const StoreWords& words, int64_t held, int64_t bytes, const OwnMost& own) {
  return Busy("your " + Full(words, held, bytes, own.most) + OwnBytesFlag(words, own.by_rule), kStoreRetryMs);
}

int64_t MostOfOne(const std::string& identity, int64_t most) {
  return identity == "anonymous" ? most : std::max<int64_t>(1, most / 2);
}

Status TooMany(const StoreWords& words, size_t there, int64_t most) {
  return Busy(std::to_string(there) + " " + words.several + " are " + words.are +
                  "; allowed: " + std::to_string(most),
              kStoreRetryMs);
}

Status TooManyOwn(const StoreWords& words, size_t there, const OwnMost& own) {
  const std::string said = own.by_rule ? std::string(words.count_key) + " in --policy"
                                       : std::string("--") + words.several + "-per-identity";
  return Busy(std::to_string(there) + " of your " + words.several + " are " + words.are +
                  "; allowed: " + std::to_string(own.most) + " (" + said + ")",
              kStoreRetryMs);
}

}  // namespace tilewire::engine

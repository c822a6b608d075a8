#include "server/rpc/identity/policy.h"

#include <algorithm>

namespace tilewire::rpc {
namespace {

Status Denied(const std::string& identity, const std::string& what, std::string field, std::string value,
              std::string allowed) {
  return Status({.code = Code::kPermissionDenied,
                 .reason = "POLICY",
                 .message = identity + " may not " + what + ", by the server's --policy",
                 .field = std::move(field),
                 .value = std::move(value),
                 .allowed = std::move(allowed)});
}

bool Names(const std::string& who, const std::string& identity) {
  return who.ends_with('*') ? identity.starts_with(std::string_view(who).substr(0, who.size() - 1))
                            : who == identity;
}

}  // namespace

const Policy::Rule* Policy::Of(const std::string& identity) const {
  const auto rule = std::ranges::find_if(rules_, [&](const Rule& each) {
    return std::ranges::any_of(each.who, [&](const std::string& who) { return Names(who, identity); });
  });
  return rule == rules_.end() ? nullptr : &*rule;
}

Status Policy::MayCall(const std::string& identity, const std::string& method) const {
  const Rule* const rule = Of(identity);
  if (rule == nullptr)
    return Denied(identity, "call anything", "identity", identity, "callers whom a rule names");
  if (rule->methods.contains(method)) return {};
  return Denied(identity, "call " + method, "method", method, "what the rule for this caller lists");
}

Status Policy::MayRun(const std::string& identity, std::string_view operation, int64_t bytes) const {
  const Rule* const rule = Of(identity);
  if (rule == nullptr || !rule->operations.contains(operation))
    return Denied(identity, "run " + std::string(operation), "operation", std::string(operation),
                  "what the rule for this caller lists");
  if (rule->max_bytes == 0 || bytes <= rule->max_bytes) return {};
  const std::string most = std::to_string(rule->max_bytes);
  return Denied(identity,
                "run " + std::string(operation) + " on more than " + most +
                    " bytes of operands and results (max_bytes), and these are " + std::to_string(bytes),
                "bytes", std::to_string(bytes), most + " of operands and results");
}

PolicyLimits Policy::LimitsOf(const std::string& identity) const {
  const Rule* const rule = Of(identity);
  return rule == nullptr ? PolicyLimits() : rule->limits;
}

}  // namespace tilewire::rpc

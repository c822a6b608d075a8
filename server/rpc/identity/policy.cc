#include "server/rpc/identity/policy.h"

#include <algorithm>

#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {
namespace {

bool Names(std::string_view who, std::string_view identity) {
  return who.ends_with('*') ? identity.starts_with(who.substr(0, who.size() - 1)) : who == identity;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// Whether all whom `later` names are named by `who`.
bool Covers(std::string_view who, std::string_view later) {
  if (who == later || !later.ends_with('*')) return Names(who, later);
  return who.ends_with('*') && Names(who, later.substr(0, later.size() - 1));
}

}  // namespace

std::vector<std::string> Policy::Doubts(const Tokens* tokens) const {
  if (rules_.empty()) return {"there are no rules, so that nobody may do anything"};
  constexpr std::string_view kToken = "token:", kUid = "uid:";
  std::vector<std::string> doubts;
  for (size_t i = 0; i < rules_.size(); ++i) {
    for (const std::string& who : rules_[i].who) {
      const std::string has = "rules[" + std::to_string(i) + "] names " + who;
      for (size_t before = 0; before < i; ++before)
        if (std::ranges::any_of(rules_[before].who, [&](const auto& other) { return Covers(other, who); })) {
          doubts.push_back(has + ", for whom rules[" + std::to_string(before) + "] counts");
          break;
        }
      if (who.starts_with(kUid)) doubts.push_back(has + ", and users behind unix sockets are not known");
      if (!who.starts_with(kToken) || who.ends_with('*')) continue;
      if (tokens == nullptr || !tokens->Has(std::string_view(who).substr(kToken.size())))
        doubts.push_back(has + ", and --tokens has no such name");
    }
  }
  return doubts;
}

Policy::Ruling Policy::For(std::string_view identity) const {
  const auto rule = std::ranges::find_if(rules_, [&](const Rule& each) {
    return std::ranges::any_of(each.who, [&](const std::string& who) { return Names(who, identity); });
  });
  return {identity, rule == rules_.end() ? nullptr : &*rule};
}

Status Policy::Ruling::Denied(const std::string& what, std::string field, std::string value,
                              std::string allowed) const {
  return Status({.code = Code::kPermissionDenied,
                 .reason = "POLICY",
                 .message = std::string(identity_) + " may not " + what + ", by the server's --policy",
                 .field = std::move(field),
                 .value = std::move(value),
                 .allowed = std::move(allowed)});
}

Status Policy::Ruling::MayCall(std::string_view method) const {
  if (!judges_) return {};
  if (rule_ == nullptr)
    return Denied("call anything", "identity", std::string(identity_), "callers whom a rule names");
  if (Has(rule_->methods, method)) return {};
  return Denied("call " + std::string(method), "method", std::string(method),
                Has(rule_->for_admins, method) ? "callers whose rule says \"admin\": true"
                                               : "what the rule for this caller lists");
}

Status Policy::Ruling::MayRun(std::string_view operation, int64_t bytes) const {
  if (!judges_) return {};
  if (rule_ == nullptr || !Has(rule_->operations, operation))
    return Denied("run " + std::string(operation), "operation", std::string(operation),
                  "what the rule for this caller lists");
  if (rule_->max_bytes == 0 || bytes <= rule_->max_bytes) return {};
  const std::string most = std::to_string(rule_->max_bytes);
  return Denied("run " + std::string(operation) + " on more than " + most +
                    " bytes of operands and results (max_bytes), and these are " + std::to_string(bytes),
                "bytes", std::to_string(bytes), most + " of operands and results");
}

}  // namespace tilewire::rpc

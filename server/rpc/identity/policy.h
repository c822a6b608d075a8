// Who may do what: the operator's file, as decisions. No gRPC here.
//
//   {"groups": {"staff": ["token:ann", "spiffe://example.org/ns/lab/*"]},
//    "rules": [{"who": ["staff"], "methods": ["*"], "operations": ["*"], "admin": true},
//              {"who": ["*"], "methods": ["Kernels.*", "Device.Describe"], "operations": ["rmse"],
//              "max_bytes": "64MiB", "calls_per_second": 10}]}
//
// The first rule that names a caller decides; whom none names may do nothing. Names that a server has not are
// errors, since a rule that never holds is a mistake.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::rpc {

class Tokens;

/// What a policy may name.
struct PolicyWords {
  std::vector<std::string> methods;     ///< "Kernels.Rmse"
  std::set<std::string> admin_methods;  ///< of these: for rules with "admin" alone, whatever their "methods"
  std::vector<std::string> operations;  ///< "rmse"
};

/// What a rule bounds for each identity that it names; 0: as the server's flags bound it for all.
struct PolicyLimits {
  int64_t calls_per_second = 0, bytes_per_second = 0;
  int max_in_flight = 0, queue_length = 0;
  int64_t device_bytes = 0;  ///< of jobs and arrays together
  int streams = 0;           ///< calls that stream, from their headers to their end
  int64_t arrays = 0, array_bytes = 0, regions = 0, region_bytes = 0;
};

/// One reading of the file. Immutable, so thread-safe.
class Policy {
 public:
  class Ruling;

  /// Of a file's text. INVALID_ARGUMENT with what is wrong, where it is, and what is allowed: no JSON, keys
  /// that are unknown, doubled or missing, values of another type, identities, methods or operations that
  /// there are not, a group that is not there.
  static Result<Policy> Parse(std::string_view text, const PolicyWords& words);

  /// What a caller (Identity::Text()) may. A view of this and of that text.
  Ruling For(std::string_view identity) const;

  /// What is allowed, and surely not meant: no rules, names that a rule before has already, names of tokens
  /// that there are not. `tokens`: null where none are taken.
  std::vector<std::string> Doubts(const Tokens* tokens) const;

  size_t size() const { return rules_.size(); }

 private:
  friend class PolicyReader;
  /// Looked up by every call: a dozen, of which a walk that compares lengths first takes less than a hash.
  using Words = std::vector<std::string>;
  struct Rule {
    std::vector<std::string> who;  ///< identities; with * at the end: all that begin so
    Words methods, operations;
    Words for_admins;       ///< methods that it would list, were its callers administrators
    int64_t max_bytes = 0;  ///< 0: no bound
    PolicyLimits limits;
  };

  std::vector<Rule> rules_;
};

/// Copied freely, not used after what it is a view of.
class Policy::Ruling {
 public:
  /// Where the server has no policy: everybody may do everything.
  Ruling() = default;

  /// PERMISSION_DENIED `POLICY` where the caller may not call that method.
  Status MayCall(std::string_view method) const;
  /// The same for an operation whose operands and results have `bytes`.
  Status MayRun(std::string_view operation, int64_t bytes) const;
  /// None where no rule names the caller.
  PolicyLimits limits() const { return rule_ == nullptr ? PolicyLimits() : rule_->limits; }

 private:
  friend class Policy;
  Ruling(std::string_view identity, const Rule* rule) : judges_(true), identity_(identity), rule_(rule) {}
  Status Denied(const std::string& what, std::string field, std::string value, std::string allowed) const;

  bool judges_ = false;
  std::string_view identity_;
  const Rule* rule_ = nullptr;  ///< null: none names him
};

}  // namespace tilewire::rpc

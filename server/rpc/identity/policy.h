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
};

/// One reading of the file. Immutable, so thread-safe.
class Policy {
 public:
  /// Of a file's text. INVALID_ARGUMENT with what is wrong, where it is, and what is allowed: no JSON, keys
  /// that are unknown, doubled or missing, values of another type, identities, methods or operations that
  /// there are not, a group that is not there.
  static Result<Policy> Parse(std::string_view text, const PolicyWords& words);

  /// PERMISSION_DENIED `POLICY` where the caller (Identity::Text()) may not call that method.
  Status MayCall(const std::string& identity, const std::string& method) const;
  /// The same for an operation whose operands and results have `bytes`.
  Status MayRun(const std::string& identity, std::string_view operation, int64_t bytes) const;

  /// Of a caller; none where no rule names him.
  PolicyLimits LimitsOf(const std::string& identity) const;

  size_t size() const { return rules_.size(); }

 private:
  friend class PolicyReader;
  struct Rule {
    std::vector<std::string> who;  ///< identities; with * at the end: all that begin so
    std::set<std::string, std::less<>> methods, operations;
    int64_t max_bytes = 0;  ///< 0: no bound
    PolicyLimits limits;
  };
  /// Null: none names him.
  const Rule* Of(const std::string& identity) const;

  std::vector<Rule> rules_;
};

}  // namespace tilewire::rpc

// What connections that are gone leave to their peers' others.
#pragma once

#include <string>
#include <unordered_map>

namespace tilewire::rpc {

/// Of one kind, as calls that failed: so that who comes again with another connection is not new. By
/// Peer::group, what is ten seconds old counts half, as in Burden. Thread-compatible.
class LeftBefore {
 public:
  /// A connection has ended that had so much; all together are no more than `most`.
  void Left(const std::string& group, double amount, double most);
  /// Time has passed.
  void Pass(double seconds);
  double Of(const std::string& group) const;
  /// Of any.
  double most() const { return most_; }

 private:
  std::unordered_map<std::string, double> left_;
  double most_ = 0;
};

}  // namespace tilewire::rpc

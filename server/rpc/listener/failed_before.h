// Failed calls of connections that are gone.
#pragma once

#include <string>
#include <unordered_map>

namespace tilewire::rpc {

/// So that who comes again with another connection is not new: by Peer::group, those of ten seconds ago count
/// half, as in Burden. Thread-compatible.
class FailedBefore {
 public:
  /// A connection has ended that had so many; all together are no more than `most`.
  void Left(const std::string& group, double failed_calls, double most);
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

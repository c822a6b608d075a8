#include "server/rpc/listener/left_before.h"

#include <algorithm>
#include <cmath>

namespace tilewire::rpc {
namespace {

constexpr double kHalfLifeSeconds = 10;
/// Fewer are not worth being kept.
constexpr double kFew = 8;

}  // namespace

void LeftBefore::Left(const std::string& group, double amount, double most) {
  if (amount < kFew) return;
  double& left = left_[group];
  left = std::min(left + amount, most);
  most_ = std::max(most_, left);
}

void LeftBefore::Pass(double seconds) {
  most_ = 0;
  if (left_.empty()) return;
  const double kept = std::exp2(-seconds / kHalfLifeSeconds);
  for (auto& [group, left] : left_) most_ = std::max(most_, left *= kept);
  std::erase_if(left_, [](const auto& one) { return one.second < kFew; });
}

double LeftBefore::Of(const std::string& group) const {
  const auto found = left_.find(group);
  return found == left_.end() ? 0 : found->second;
}

}  // namespace tilewire::rpc

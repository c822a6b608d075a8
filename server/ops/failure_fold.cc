#include "server/ops/failure_fold.h"

#include <chrono>
#include <utility>

namespace tilewire::ops {

FailureFold::FailureFold(Tell tell, TimeSource* time) : tell_(std::move(tell)), timer_(time) {}

FailureFold::~FailureFold() {
  Settle();
}

bool FailureFold::Admit(const rpc::CallRecord& record) {
  return Admit({.caller = record.caller,
                .method = record.method,
                .status = std::string(CodeName(record.status.code())),
                .reason = std::string(record.status.reason())});
}

bool FailureFold::Admit(FailureKind kind) {
  const MutexLock lock(mutex_);
  if (seen_.empty()) timer_.At(timer_.Now() + std::chrono::seconds(1), [this] { Settle(); });
  auto found = seen_.find(kind);
  if (found == seen_.end()) {
    // The names are the clients' choice, so that their number must not be.
    if (seen_.size() >= kMostKinds) kind = FailureKind{};
    found = seen_.try_emplace(std::move(kind), 0).first;
  }
  return ++found->second <= kLines;
}

void FailureFold::Settle() {
  std::map<FailureKind, uint64_t> over;
  {
    const MutexLock lock(mutex_);
    over.swap(seen_);
  }
  for (const auto& [kind, calls] : over)
    if (calls > kLines) tell_(kind, calls - kLines);
}

}  // namespace tilewire::ops

// Executors whose functions run when a test wants them to.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "server/base/executor.h"

namespace tilewire::testing {

/// At once, inside Post(), as no real one does: for tests of who comes first, not of where.
class AtOnce final : public Executor {
 public:
  void Post(std::function<void()> function) override { function(); }
};

/// When told to. For one thread.
class WhenTold final : public Executor {
 public:
  void Post(std::function<void()> function) override { functions_.push_back(std::move(function)); }
  bool empty() const { return functions_.empty(); }
  /// Everything that was posted, and what that posts.
  void Run() {
    while (!functions_.empty()) {
      const auto function = std::move(functions_.front());
      functions_.pop_front();
      function();
    }
  }

 private:
  std::deque<std::function<void()>> functions_;
};

}  // namespace tilewire::testing

// What streams of a wide connection hold together of its allowance.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "server/base/mutex.h"
#include "server/rpc/listener/account.h"
#include "server/rpc/transport/allowance.h"

namespace tilewire::rpc {

/// gRPC with its probe grants a connection one window, and beyond it each stream the message that is being
/// read (chttp2's TransportFlowControl::target_window): so the window counts once for all streams of a
/// connection, from the first to the last of them. One thread at a time.
class WindowShare {
 public:
  explicit WindowShare(Allowance* allowance) : allowance_(allowance) {}
  ~WindowShare() { Leave(); }
  WindowShare(const WindowShare&) = delete;
  WindowShare& operator=(const WindowShare&) = delete;

  /// The stream holds its part of `bytes` from now on. As Allowance::Take. Once.
  Status Join(std::shared_ptr<ConnectionAccount> connection, int64_t bytes) {
    const MutexLock lock(connection->window_mutex);
    if (connection->window_streams == 0) TILEWIRE_RETURN_IF_ERROR(allowance_->Take(bytes));
    ++connection->window_streams;
    bytes_ = bytes;
    connection_ = std::move(connection);
    return {};
  }

 private:
  void Leave() {
    if (!connection_) return;
    const MutexLock lock(connection_->window_mutex);
    if (--connection_->window_streams == 0) allowance_->Return(bytes_);
  }

  Allowance* const allowance_;
  std::shared_ptr<ConnectionAccount> connection_;
  int64_t bytes_ = 0;
};

}  // namespace tilewire::rpc

// Dials the server's own data port: a listener that ran out of file descriptors stays deaf while health
// checks over older connections still look fine.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace tilewire::rpc {

/// Every 5 s makes a new connection to `address` and calls Device.Describe. Reports not live after three
/// failures in a row, live again after a success; reports only changes.
class SelfProbe {
 public:
  using Report = std::function<void(bool live, const std::string& why)>;
  SelfProbe(std::vector<std::string> addresses, std::string token, Report report);
  ~SelfProbe();

 private:
  void Run();
  /// Why `address` does not answer; empty: it does.
  std::string Dial(const std::string& address) const;

  const std::vector<std::string> addresses_;
  const std::string token_;
  const Report report_;
  Mutex mutex_;
  CondVar wake_;
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilewire::rpc

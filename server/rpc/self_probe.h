// Dials the server's own data port: a listener that ran out of file descriptors stays deaf while health
// checks over older connections still look fine.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tilewire::rpc

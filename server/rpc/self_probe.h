// Dials the server's own data port: a listener that ran out of file descriptors stays deaf while health
// checks over older connections still look fine.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tilewire::rpc {

/// Every 5 s makes a new connection to `address` and calls Device.Describe. Reports not live after three
/// failures in a row, live again after a success; reports only changes.
class SelfProbe {
 public:
  SelfProbe(std::string address, std::function<void(bool live)> report);
  ~SelfProbe();

 private:
  void Run();
  bool Dial() const;

  const std::string address_;
  const std::function<void(bool)> report_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tilewire::rpc

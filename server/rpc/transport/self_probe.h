// Dials the server's own data port: a listener that ran out of file descriptors stays deaf while health
// checks over older connections still look fine.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::rpc {

/// Every 5 s makes new connections and calls Device.Describe over each. Reports not live after three
/// failures in a row, live again after a success; reports only changes.
class SelfProbe {
 public:
  using Report = std::function<void(bool live, const std::string& why)>;
  /// Sockets that are connected, or about to be, to each that the server listens on.
  using DialAll = std::function<Result<std::vector<FileDescriptor>>()>;
  SelfProbe(DialAll dial_all, std::string token, Report report);
  ~SelfProbe();

 private:
  void Run();
  /// Why the server does not answer; empty: it does.
  std::string Ask() const;
  std::string AskOver(FileDescriptor connection) const;

  const DialAll dial_all_;
  const std::string token_;
  const Report report_;
  Mutex mutex_;
  CondVar wake_;
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilewire::rpc

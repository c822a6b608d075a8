// What a server tells about calls and connections, kept for tests.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/server.h"

namespace tilewire::testing {

/// Keeps what the server tells about its calls.
class RecordingObserver final : public rpc::CallObserver {
 public:
  void OnCallStart(std::string_view) override { started_.fetch_add(1); }
  void OnCallEnd(const rpc::CallRecord& record) override {
    std::lock_guard lock(mutex_);
    records_.push_back(record);
  }
  void OnConnectionOpened() override { opened_.fetch_add(1); }
  void OnConnectionClosed() override { closed_.fetch_add(1); }
  void OnConnectionRefused(rpc::Refusal) override { refused_.fetch_add(1); }
  void OnConnectionEnded(rpc::Ending) override { ended_.fetch_add(1); }
  void OnMessageRefused() override { messages_refused_.fetch_add(1); }
  void OnConnectionWindow(rpc::WindowClass needed, rpc::WindowClass given) override {
    windows_[static_cast<size_t>(given)].fetch_add(1);
    if (given != needed) narrowed_.fetch_add(1);
  }
  void OnNotice(std::string_view text) override { Tell(text); }
  void OnWarning(std::string_view text) override { Tell(text); }
  int windows(rpc::WindowClass given) const { return windows_[static_cast<size_t>(given)].load(); }
  int narrowed() const { return narrowed_.load(); }
  int started() const { return started_.load(); }
  int opened() const { return opened_.load(); }
  int closed() const { return closed_.load(); }
  int refused() const { return refused_.load(); }
  int ended() const { return ended_.load(); }
  int messages_refused() const { return messages_refused_.load(); }
  std::vector<rpc::CallRecord> records() const {
    std::lock_guard lock(mutex_);
    return records_;
  }
  /// How many notices and warnings began so.
  int told(std::string_view beginning) const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(
        told_.begin(), told_.end(), [&](const std::string& text) { return text.starts_with(beginning); }));
  }

 private:
  void Tell(std::string_view text) {
    std::lock_guard lock(mutex_);
    told_.emplace_back(text);
  }

  std::atomic<int> started_{0}, opened_{0}, closed_{0}, refused_{0}, ended_{0}, narrowed_{0},
      messages_refused_{0};
  std::array<std::atomic<int>, rpc::kWindowClasses> windows_{};
  mutable std::mutex mutex_;
  std::vector<rpc::CallRecord> records_;
  std::vector<std::string> told_;
};

}  // namespace tilewire::testing

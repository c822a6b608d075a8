// What is told of a call: that it came, and how it ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/timing.h"
#include "server/rpc/calls/context.h"
#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/observer.h"

namespace tilewire::rpc {

/// Used by one thread at a time.
class Record {
 public:
  Record(CallContext* shared, std::string method) : shared_(shared) { told_.method = std::move(method); }

  /// The call is here, since `arrived`. `metadata` outlives the record.
  void Start(const Metadata* metadata, TimePoint arrived);
  bool started() const { return metadata_ != nullptr; }
  TimePoint arrived() const { return arrived_; }
  /// When Start() was, by the engine's timer; not of the server's own calls.
  TimePoint came() const { return came_; }
  /// Its time counts from here: until now it was its client's.
  void SetArrived(TimePoint arrived) { arrived_ = arrived; }
  const std::string& method() const { return told_.method; }

  /// What is known of it meanwhile.
  void SetOperation(std::string_view operation) { told_.operation = operation; }
  void SetJob(const std::string& job) { told_.job = job; }
  void SetShed(JobClass job) { told_.shed = job; }
  void SetJoins() { told_.joins = true; }

  /// Bytes that its stream may send in a round trip.
  void SetWindow(int64_t bytes) { window_ = bytes; }
  const std::shared_ptr<ConnectionAccount>& account() const { return account_; }
  /// Adds how far away the client is, and how much of the time to receive that explains.
  Timing WithDistance(Timing timing) const;

  /// A message of that many bytes was taken from the call's connection; of a stream beside End(), perhaps.
  void Took(size_t message_bytes, bool of_stream) {
    took_ = true;
    if (!account_) return;
    account_->message_bytes.fetch_add(message_bytes, std::memory_order_relaxed);
    if (!of_stream && message_bytes <= kFewBytes)
      unmoved_ = message_bytes;
    else
      Moved(message_bytes);
  }
  /// That many bytes of results left by a stream.
  void Left(uint64_t bytes) {
    left_ += bytes;
    Moved(bytes);
  }
  /// How it ended, as its client is told. `timing`: of its job, where it ran one. Of a stream all that moved
  /// is counted already.
  void End(const Status& status, Timing timing, bool of_stream);
  const Status& status() const { return told_.status; }
  void SetStatus(const Status& status) { told_.status = status; }
  /// Once, when nothing of it is left.
  void Tell();

 private:
  /// Whether its deadline was so soon that no client means it.
  bool HadNoTime() const;

  /// The message of a unary call: counted when it ends, with its answer.
  static constexpr uint64_t kFewBytes = 32 << 10;

  /// Counts bytes against what the connection may move in a second.
  void Moved(uint64_t bytes) const;

  CallContext* const shared_;
  const Metadata* metadata_ = nullptr;
  TimePoint arrived_, came_;
  CallRecord told_;
  bool took_ = false;  ///< a message
  std::shared_ptr<ConnectionAccount> account_;
  int64_t window_ = 0;    ///< 0: not of a stream
  uint64_t left_ = 0;     ///< bytes of results, of a stream
  uint64_t unmoved_ = 0;  ///< bytes of its message that are not counted yet
};

}  // namespace tilewire::rpc

// One call to a server, from its arguments to its outcome.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "client/cpp/client.h"
#include "client/python/core/fork.h"

namespace tilewire::python {

/// Adds to a failure what is known beside it. Called without the GIL; thread-safe.
using Explain = std::function<Status(Status)>;

/// Made and read with the GIL, run once without it, by any thread. Refers to memory of its operands and its
/// result, which Python keeps until it has run.
class Call {
 public:
  /// What to do; a stored result goes to the second argument.
  using Work =
      std::function<Result<client::Reply>(const client::CallOptions&, std::optional<client::OwnedArray>*)>;

  /// `options.stop` is the call's own. `explain` gets why it failed.
  Call(const client::CallOptions& options, Explain explain, Work work);

  /// Runs it: an error is part of the outcome.
  void Run();
  /// Ends it with CANCELLED, now or when it runs. From any thread, at any time.
  void Cancel() { stop_.request_stop(); }
  const std::stop_source& stop_source() const { return stop_; }

  /// OK, or why it failed; a call whose time is over says so, whatever was noticed first.
  const Status& status() const { return status_; }
  /// Nothing where it failed.
  const std::optional<client::Reply>& reply() const { return reply_; }
  /// The array that it stored, once; null where it stored none.
  Owned<client::OwnedArray> TakeStored();

 private:
  client::CallOptions options_;
  std::stop_source stop_;
  Explain explain_;
  Work work_;  ///< empty when it has run, so that it keeps nothing
  Status status_;
  std::optional<client::Reply> reply_;
  Owned<client::OwnedArray> stored_;
};

}  // namespace tilewire::python

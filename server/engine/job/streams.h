// The streams that carry a job.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::engine {

/// Which have half-closed and which are done. Invariant: stream 0, which opened the job, is always there, and
/// one stream at most was lost. Thread-compatible: guarded by its job's mutex.
class Streams {
 public:
  int count() const { return static_cast<int>(streams_.size()); }
  /// One more, of that number.
  int Add();

  void HalfClose(int stream) { at(stream).half_closed = true; }
  bool half_closed(int stream) const { return at(stream).half_closed; }
  bool all_half_closed() const;

  void Done(int stream) { at(stream).done = true; }
  bool done(int stream) const { return at(stream).done; }
  /// Whether all but the first are.
  bool joined_done() const;

  /// That one's end fails the job, for which it has reasons of its own.
  void Lose(int stream, const Status& why);
  /// What a stream is told of a job that ends with `status`.
  const Status& Told(int stream, const Status& status) const { return stream == lost_ ? why_lost_ : status; }

 private:
  struct Stream {
    bool half_closed = false, done = false;
  };
  Stream& at(int stream) { return streams_[static_cast<size_t>(stream)]; }
  const Stream& at(int stream) const { return streams_[static_cast<size_t>(stream)]; }

  std::vector<Stream> streams_{1};
  int lost_ = -1;
  Status why_lost_;
};

}  // namespace tilewire::engine

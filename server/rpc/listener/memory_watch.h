// Whether memory runs short, before the system ends the process for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::rpc {

/// Bytes.
struct MemoryState {
  int64_t resident = 0;  ///< of this process
  int64_t usable = 0;    ///< that it could still have
};

/// Thread-compatible.
class MemoryWatch {
 public:
  using Read = std::function<std::optional<MemoryState>()>;
  /// `most_resident` 0: only what the system leaves counts, an eighth of which at the start must stay. `read`
  /// is asked for the state, nothing where it cannot be told; empty: this process' own.
  MemoryWatch(int64_t most_resident, Read read);

  /// Looks. True where memory is short, and shorter than when this was last true: what was shed since then
  /// may still be on its way. False where the state cannot be told: nobody is shed for a file that does not
  /// open.
  bool Short();
  /// Whether this process has much more than when Short() looked last: a question of microseconds, where what
  /// the system leaves takes hundreds.
  bool HasGrown() const;
  /// Whether it is so near that the next look should come soon.
  bool near() const { return near_; }
  /// Whether it was short at the last look, told or not.
  bool over() const { return over_; }

 private:
  const int64_t most_resident_;
  const FileDescriptor statm_;  ///< none: `read` was given
  const Read read_;
  const int64_t least_usable_;
  int64_t seen_resident_ = 0;  ///< by the last Short()
  int64_t told_resident_ = 0;  ///< when it was last true; 0: it is not short
  bool near_ = false, over_ = false;
};

}  // namespace tilewire::rpc

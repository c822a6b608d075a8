// A queue's thread that has nothing to do but to wait for a kernel waits awake.
#pragma once

#include <memory>

namespace tilewire::rpc {

/// What a thread can wait for awake.
class Lookout {
 public:
  virtual ~Lookout() = default;
  /// Looks after it for a moment. False: there is no need to any more.
  virtual bool Look() = 0;
  /// Leaves it to whoever looks after it else.
  virtual void Leave() = 0;
};

/// What this thread waits for, at most one: then neither it has to be woken for the next
/// call nor a lane's thread for the reply. One a thread, used by that thread alone, which must be of a Crew.
class Awaited {
 public:
  static Awaited& OfThisThread();

  /// Whatever was awaited before is left.
  void Keep(std::shared_ptr<Lookout> lookout);
  bool any() const { return lookout_ != nullptr; }
  /// Looks after it for a moment: its reply, or another's of its lane, may be sent meanwhile.
  void Look();
  /// There is something to do: others take over.
  void Leave();

 private:
  std::shared_ptr<Lookout> lookout_;
};

}  // namespace tilewire::rpc

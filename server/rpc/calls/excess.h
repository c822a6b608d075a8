// Whether more calls come than can be done, and go on coming.
#pragma once

#include <algorithm>

namespace tilewire::rpc {

/// Calls between two looks.
struct CallsWindow {
  double seconds = 0;
  double came = 0, begun = 0, done = 0, dropped = 0;
  bool idle = true;  ///< at some time nobody waited

  /// As many as can be done, where that is not told by what began, which fills places at once, nor by what
  /// ended: those that run side by side end all at once, too.
  double through() const { return std::min(begun, done); }
};

/// Tells an excess from callers who are many, but call again only when they were answered: what waits of
/// theirs does not grow. As many as a `crowd` may come at once, and where more wait than that it is learned:
/// half more than usually wait, or waited when an excess began that was over within a second, up to what
/// takes eight times `late`. Not thread-safe.
class Excess {
 public:
  /// `late`, in seconds, is long to wait. Without a `crowd` it is a matter of that alone.
  Excess(double late, double crowd) : late_(late), crowd_(crowd) {}

  struct Seen {
    double waiting = 0;     ///< calls
    double unread = 0;      ///< of these in sockets, a guess
    double running = 0;     ///< others
    double waits = 0;       ///< seconds, a call that comes now
    double rate = 0;        ///< calls a second that can be done; not 0
    bool full = false;      ///< there was no place to wait at
    CallsWindow now, both;  ///< since the last look, and the one before it
  };
  /// At each look while there is none: whether there is one now.
  bool Begins(const Seen& seen);
  /// The one that began last is over, after so many seconds.
  void Ends(double seconds);

 private:
  /// As many may wait; learns it.
  double Crowd(const Seen& seen);

  const double late_;
  const double crowd_;
  int often_ = 0;            ///< looks in a row that found one
  double least_waited_ = 0;  ///< lately, since anybody does
  double usual_ = 0;         ///< calls that wait
  double began_with_ = 0;    ///< calls that waited
  double busy_ = 0;          ///< seconds that somebody waited, ever
};

}  // namespace tilewire::rpc

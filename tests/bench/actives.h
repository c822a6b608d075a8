// Clients that behave, beside those that stall; every answer is checked bit by bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/client.h"

namespace tilewire::bench {

/// Operands and right answer of an RMSE of two f32 arrays of `mebibytes` together. Immutable.
class Problem {
 public:
  explicit Problem(int64_t mebibytes);
  int64_t mebibytes() const { return mebibytes_; }
  const client::ArraySource& a() const { return a_; }
  const client::ArraySource& b() const { return b_; }
  /// Whether a reply is right, to the bit.
  bool Right(const client::RmseReply& reply) const { return reply.values.at(0) == answer_; }

 private:
  const int64_t mebibytes_;
  const float* const data_;
  const client::ArraySource a_, b_;
  const double answer_;
};

/// How calls ended. Thread-safe.
struct Tally {
  std::atomic<int> bulk{0}, small{0};  ///< right answers
  std::atomic<int> refused{0};         ///< told to come back later
  std::atomic<int> broken{0};          ///< a wrong answer, or any other end; stderr says which
};

/// Callers on threads of their own, a connection each. Used by one thread; ends when all calls have.
class Actives {
 public:
  /// `problem` is what bulk calls upload.
  Actives(std::string address, const Problem* problem, Tally* tally)
      : address_(std::move(address)), problem_(problem), tally_(tally) {}
  ~Actives() { Let(); }

  /// One more caller that uploads `times` times.
  void Push(int times);
  void PushOnce() { Push(1); }
  /// One that stops in the middle of its upload until Let.
  void PushHeld();
  void WaitUntilHeld(int calls) const;
  void Let() { let_.store(true); }
  /// `callers` more callers, each of `calls` unary calls of 4 KiB.
  void CallSmall(int callers, int calls);

 private:
  void Upload(client::Client* client, const client::CallOptions& options);

  const std::string address_;
  const Problem* const problem_;
  Tally* const tally_;
  std::atomic<int> held_{0};
  std::atomic<bool> let_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace tilewire::bench

// Where the results of calls land until they are checked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "client/cpp/client.h"
#include "server/base/mutex.h"

namespace tilewire::load {

/// A byte for each page of a result, and for its last one, that none of the right answers has there. A place
/// that it was spread over holds no right answer, whatever was left there by calls before.
class Poison {
 public:
  /// `answers`: the right ones, all of one length; 255 at most.
  explicit Poison(std::span<const std::span<const uint8_t>> answers);
  /// Writes it over a place as long as the answers.
  void Spread(uint8_t* data) const;

 private:
  std::vector<size_t> places_;
  std::vector<uint8_t> bytes_;
};

/// Room for the result of one call.
struct ResultPlace {
  uint8_t* data = nullptr;
  std::optional<client::RegionPlace> region;  ///< none: memory of this process alone
};

/// The places of one operation. Thread-safe; outlives what it gave.
class ResultBuffers {
 public:
  /// Cleans a place: afterwards no right answer is there.
  using Spoil = std::function<void(uint8_t* data)>;
  /// Who may have a place: the caller whose number it has, who is done with it before the next call, or
  /// whoever comes.
  enum class Sharing : uint8_t { kByCaller, kPool };

  /// Places that are there already; they outlive this object.
  ResultBuffers(std::vector<ResultPlace> places, Sharing sharing, Spoil spoil);
  /// Memory of this process, `bytes` a place: `at_first` of them now, more when all are taken, up to `most`.
  /// In a pool no second or further one is made that needs more than half of the memory that is free.
  ResultBuffers(uint64_t bytes, uint32_t at_first, uint32_t most, Sharing sharing, Spoil spoil);

  /// A clean place, the caller's as long as it is held; who gives it back, on whichever thread, cleans it.
  /// Waits where none is left, and adds that time to `waited_seconds`. Null once `stop` is requested.
  std::shared_ptr<const ResultPlace> Take(uint32_t caller, const std::stop_token& stop,
                                          double* waited_seconds);
  size_t made() const;

 private:
  /// A new clean place, in places_; false where there is no memory for it or there are enough.
  bool Grow() TILEWIRE_REQUIRES(mutex_);
  const ResultPlace* Wait(const std::stop_token& stop);
  void GiveBack(const ResultPlace* place);

  const uint64_t bytes_;
  const size_t most_;
  const Sharing sharing_;
  const Spoil spoil_;
  mutable Mutex mutex_;
  CondVar given_back_;
  // Places never move: what is taken points there.
  std::vector<std::unique_ptr<ResultPlace>> places_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<std::vector<uint8_t>> memory_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<const ResultPlace*> clean_ TILEWIRE_GUARDED_BY(mutex_);  ///< the last one is the warmest
  std::vector<const ResultPlace*> by_caller_;  ///< places_, where callers have their own
};

}  // namespace tilewire::load

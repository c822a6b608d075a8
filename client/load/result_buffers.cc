#include "client/load/result_buffers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "client/load/machine.h"

namespace tilewire::load {
namespace {

constexpr size_t kPage = 4096;

uint8_t ByteOfNone(std::span<const std::span<const uint8_t>> answers, size_t at) {
  std::array<bool, 256> taken{};
  for (const auto& answer : answers) taken[answer[at]] = true;
  return static_cast<uint8_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
}

}  // namespace

Poison::Poison(std::span<const std::span<const uint8_t>> answers) {
  const size_t size = answers.front().size();
  for (size_t at = 0; at < size; at += kPage) places_.push_back(at);
  if (size > 0 && (size - 1) % kPage != 0) places_.push_back(size - 1);
  for (const size_t at : places_) bytes_.push_back(ByteOfNone(answers, at));
}

void Poison::Spread(uint8_t* data) const {
  for (size_t i = 0; i < places_.size(); ++i) data[places_[i]] = bytes_[i];
}

ResultBuffers::ResultBuffers(std::vector<ResultPlace> places, Sharing sharing, Spoil spoil)
    : bytes_(0), most_(places.size()), sharing_(sharing), spoil_(std::move(spoil)) {
  const MutexLock lock(mutex_);
  for (ResultPlace& place : places) {
    places_.push_back(std::make_unique<ResultPlace>(std::move(place)));
    spoil_(places_.back()->data);
    clean_.push_back(places_.back().get());
  }
  by_caller_ = clean_;
}

ResultBuffers::ResultBuffers(uint64_t bytes, uint32_t at_first, uint32_t most, Sharing sharing, Spoil spoil)
    : bytes_(bytes), most_(most), sharing_(sharing), spoil_(std::move(spoil)) {
  const MutexLock lock(mutex_);
  while (places_.size() < at_first && Grow()) {
  }
  by_caller_ = clean_;
}

bool ResultBuffers::Grow() {
  if (places_.size() >= most_) return false;
  const bool few = places_.empty() || sharing_ == Sharing::kByCaller;
  if (!few && bytes_ > AvailableMemoryBytes() / 2) return false;
  memory_.emplace_back(bytes_);  // zeros: the kernel gives its pages now, not during a call
  places_.push_back(std::make_unique<ResultPlace>(ResultPlace{memory_.back().data(), std::nullopt}));
  spoil_(places_.back()->data);
  clean_.push_back(places_.back().get());
  return true;
}

const ResultPlace* ResultBuffers::Wait(const std::stop_token& stop) {
  // Made and ended without the lock, which the callback takes.
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    given_back_.NotifyAll();
  });
  const MutexLock lock(mutex_);
  while (clean_.empty() && !stop.stop_requested()) given_back_.Wait(mutex_);
  if (clean_.empty()) return nullptr;
  const ResultPlace* const place = clean_.back();
  clean_.pop_back();
  return place;
}

std::shared_ptr<const ResultPlace> ResultBuffers::Take(uint32_t caller, const std::stop_token& stop,
                                                       double* waited_seconds) {
  const auto give_back = [this](const ResultPlace* place) { GiveBack(place); };
  if (sharing_ == Sharing::kByCaller) return {by_caller_[caller % by_caller_.size()], give_back};
  {
    const MutexLock lock(mutex_);
    if (!clean_.empty() || Grow()) {
      const ResultPlace* const place = clean_.back();
      clean_.pop_back();
      return {place, give_back};
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const ResultPlace* const place = Wait(stop);
  *waited_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (place == nullptr) return nullptr;
  return {place, give_back};
}

void ResultBuffers::GiveBack(const ResultPlace* place) {
  spoil_(place->data);
  if (sharing_ == Sharing::kByCaller) return;
  const MutexLock lock(mutex_);
  clean_.push_back(place);
  given_back_.NotifyOne();
}

size_t ResultBuffers::made() const {
  const MutexLock lock(mutex_);
  return places_.size();
}

}  // namespace tilewire::load

#include "server/engine/job/input_blocks.h"

#include <algorithm>
#include <utility>

namespace tilewire::engine {

InputBlocks::InputBlocks(size_t operands, int64_t blocks, std::optional<size_t> staging, const Window* window)
    : blocks_(blocks), staged_(staging.has_value()), window_(window), claimed_(operands) {
  for (size_t i = 0; i < staging.value_or(0); ++i) free_.push_back(static_cast<int>(i));
}

void InputBlocks::Stream(size_t operand) {
  claimed_[operand].assign(static_cast<size_t>(blocks_), false);
}

bool InputBlocks::Claim(uint32_t operand, int64_t index) {
  auto claimed = claimed_[operand][static_cast<size_t>(index)];
  if (claimed) return false;
  claimed = true;
  return true;
}

int64_t InputBlocks::missing() const {
  int64_t missing = 0;
  for (const auto& blocks : claimed_) missing += std::count(blocks.begin(), blocks.end(), false);
  return missing;
}

bool InputBlocks::MayTake(int64_t index) const {
  return open_ && (!staged_ || !free_.empty()) && (!window_ || window_->Admits(index));
}

std::optional<InputBlocks::Block> InputBlocks::Take(int64_t index) {
  if (!MayTake(index)) return std::nullopt;
  if (!staged_) return Block{};
  const Block block{free_.back()};
  free_.pop_back();
  return block;
}

void InputBlocks::Free(Block block) {
  if (block.staging >= 0) free_.push_back(block.staging);
}

const BlockWaiter* InputBlocks::WaiterOf(int stream) const {
  const auto waiter = std::find_if(waiters_.begin(), waiters_.end(), [stream](const BlockWaiter& candidate) {
    return candidate.stream == stream;
  });
  return waiter == waiters_.end() ? nullptr : &*waiter;
}

void InputBlocks::Wake(std::vector<std::function<void()>>* calls) {
  const auto woken = std::stable_partition(
      waiters_.begin(), waiters_.end(), [this](const BlockWaiter& waiter) { return !MayTake(waiter.index); });
  for (auto waiter = woken; waiter != waiters_.end(); ++waiter) calls->push_back(std::move(waiter->function));
  waiters_.erase(woken, waiters_.end());
}

void InputBlocks::WakeAll(std::vector<std::function<void()>>* calls) {
  for (BlockWaiter& waiter : waiters_) calls->push_back(std::move(waiter.function));
  waiters_.clear();
}

void InputBlocks::Arrived(int64_t bytes) {
  ++blocks_arrived_;
  stream_bytes_ += static_cast<uint64_t>(bytes);
}

void InputBlocks::ArrivedFromRegion(int64_t bytes) {
  ++blocks_arrived_;
  region_bytes_ += static_cast<uint64_t>(bytes);
}

}  // namespace tilewire::engine

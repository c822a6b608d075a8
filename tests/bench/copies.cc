#include "tests/bench/copies.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

namespace tilewire::bench {
namespace {

template <typename T>
T Take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

}  // namespace

Copies::Copies(engine::Device* device, int lanes, int64_t block_bytes) : block_bytes_(block_bytes) {
  const auto bytes = static_cast<size_t>(2 * lanes * block_bytes);
  host_ = Take(device->AllocatePinned(bytes));
  device_ = Take(device->AllocateDevice(bytes));
  std::memset(host_.data(), 1, bytes);
  for (int i = 0; i < lanes; ++i) {
    in_lanes_.push_back(Take(device->MakeLane(engine::LanePriority::kBulk)));
    out_lanes_.push_back(Take(device->MakeLane(engine::LanePriority::kBulk)));
  }
}

double Copies::Run(int64_t in, int64_t out) {
  std::mutex mutex;
  std::condition_variable all_done;
  int64_t left = 0;
  Status failed;
  TimePoint begin = TimePoint::max(), end = TimePoint::min();
  const auto done = [&](const engine::Completion& completion) {
    const std::lock_guard lock(mutex);
    if (!completion.status.ok()) failed = completion.status;
    begin = std::min(begin, completion.begin);
    end = std::max(end, completion.end);
    if (--left == 0) all_done.notify_one();
  };
  const int64_t lanes = static_cast<int64_t>(in_lanes_.size());
  const auto blocks = [this](int64_t bytes) { return (bytes + block_bytes_ - 1) / block_bytes_; };
  left = blocks(in) + blocks(out);
  // Both directions are enqueued side by side, so that neither has to wait for the other's last block.
  for (int64_t i = 0; i < std::max(blocks(in), blocks(out)); ++i) {
    const auto at = static_cast<size_t>(i % lanes);
    std::byte* const host = host_.data() + 2 * at * static_cast<size_t>(block_bytes_);
    std::byte* const there = device_.data() + 2 * at * static_cast<size_t>(block_bytes_);
    const auto length = [&](int64_t total) {
      return static_cast<size_t>(std::min(block_bytes_, total - i * block_bytes_));
    };
    if (i < blocks(in)) in_lanes_[at]->CopyIn(there, host, length(in), done);
    if (i < blocks(out))
      out_lanes_[at]->CopyOut(host + block_bytes_, there + block_bytes_, length(out), done);
  }
  std::unique_lock lock(mutex);
  all_done.wait(lock, [&left] { return left == 0; });
  if (!failed.ok()) throw std::runtime_error(failed.ToString());
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

}  // namespace tilewire::bench

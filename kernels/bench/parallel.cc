#include "kernels/bench/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tilewire::bench {

void ParallelFor(int64_t items, const std::function<void(int64_t, int64_t)>& body) {
  if (items <= 0) return;
  const int64_t threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, items);
  const int64_t piece = std::max<int64_t>(1, items / (threads * 8));
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t begin = next.fetch_add(piece); begin < items; begin = next.fetch_add(piece)) {
      body(begin, std::min(items, begin + piece));
    }
  };
  std::vector<std::jthread> others;
  for (int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

}  // namespace tilewire::bench

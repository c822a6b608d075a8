// Worker pool and memory pool.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "server/base/limits.h"
#include "server/base/timing.h"
#include "server/engine/device/cpu/worker_pool.h"
#include "server/engine/device/memory_pool.h"

namespace tilewire::engine {
namespace {

TEST(WorkerPool, CoversEveryItemOnceUnderConcurrentCallers) {
  for (int workers : {0, 1, 3}) {
    WorkerPool pool(workers);
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&pool, c] {
        for (int64_t items : {0, 1, 2, 99, 1000, 4096}) {
          for (int64_t grain : {0, 1, 7, 1000, 5000}) {
            std::vector<int> hits(static_cast<size_t>(items));  // plain ints: TSan sees any double cover
            pool.ParallelFor(items, grain, [&](int64_t begin, int64_t end) {
              EXPECT_LT(begin, end);
              EXPECT_LE(end - begin, std::max<int64_t>(grain, 1));
              for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)] += c + 1;
            });
            for (int hit : hits) ASSERT_EQ(hit, c + 1);
          }
        }
      });
    }
    for (auto& caller : callers) caller.join();
  }
}

TEST(WorkerPool, NestedLoopsEnd) {
  WorkerPool pool(2);
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(8, 1, [&](int64_t, int64_t) {
    pool.ParallelFor(10, 1, [&](int64_t begin, int64_t) { sum += begin; });
  });
  EXPECT_EQ(sum, 8 * 45);
}

TEST(WorkerPool, WorkersReallyHelp) {
  WorkerPool pool(3);
  // Four pieces that wait for each other: no single thread can finish them.
  std::atomic<int> here{0};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  pool.ParallelFor(4, 1, [&](int64_t, int64_t) {
    ++here;
    while (here < 4) std::this_thread::yield();
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 4u);
}

TEST(WorkerPool, AShortLoopDoesNotWaitForALongOne) {
  WorkerPool pool(2);
  std::atomic<bool> release{false}, started{false};
  std::thread long_caller([&] {
    pool.ParallelFor(1000, 1, [&](int64_t, int64_t) {
      started = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!started) std::this_thread::yield();
  std::atomic<int> done{0};
  pool.ParallelFor(100, 1, [&](int64_t, int64_t) { ++done; });  // would hang if it needed the busy workers
  EXPECT_EQ(done, 100);
  release = true;
  long_caller.join();
}

/// Raw memory that counts, with a physical limit.
class Source {
 public:
  MemoryPool::RawAllocate Allocate() {
    return [this](size_t bytes) -> Result<std::byte*> {
      std::lock_guard lock(mutex_);
      ++allocations;
      if (live + static_cast<int64_t>(bytes) > limit) return Fail(Busy("source is empty", 1));
      if (broken) return Fail(Status(Code::kInternal, "DEVICE_FAILED", "broken"));
      live += static_cast<int64_t>(bytes);
      most = std::max(most, live);
      auto* data = new std::byte[bytes];
      sizes_[data] = bytes;
      return data;
    };
  }
  MemoryPool::RawFree Free() {
    return [this](std::byte* data, size_t bytes) {
      std::lock_guard lock(mutex_);
      ++frees;
      EXPECT_EQ(sizes_.at(data), bytes);
      sizes_.erase(data);
      live -= static_cast<int64_t>(bytes);
      delete[] data;
    };
  }
  int64_t limit = int64_t{1} << 40, live = 0, most = 0;
  int allocations = 0, frees = 0;
  bool broken = false;

 private:
  std::mutex mutex_;
  std::map<std::byte*, size_t> sizes_;
};

TEST(MemoryPool, SizeClasses) {
  EXPECT_EQ(MemoryPool::RoundUp(0), 512u);
  EXPECT_EQ(MemoryPool::RoundUp(1), 512u);
  EXPECT_EQ(MemoryPool::RoundUp(512), 512u);
  EXPECT_EQ(MemoryPool::RoundUp(513), 1024u);
  EXPECT_EQ(MemoryPool::RoundUp(8193), 8704u);
  EXPECT_EQ(MemoryPool::RoundUp(4 * kMiB), static_cast<size_t>(4 * kMiB));
  EXPECT_EQ(MemoryPool::RoundUp(~size_t{0}), ~size_t{0});
  size_t last = 0;
  std::set<size_t> classes;
  for (size_t bytes = 1; bytes < (size_t{1} << 44); bytes += 1 + bytes / 97) {
    const size_t size = MemoryPool::RoundUp(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_GE(size, last) << "monotone";
    ASSERT_EQ(MemoryPool::RoundUp(size), size);
    const double most = bytes > 8192 ? 1.0625 * static_cast<double>(bytes) : static_cast<double>(bytes + 511);
    ASSERT_LE(static_cast<double>(size), most) << bytes;
    ASSERT_EQ(size % (bytes > 32 * kMiB ? 2 * kMiB : 512), 0u) << bytes;
    last = size;
    classes.insert(size);
  }
  EXPECT_LT(classes.size(), 520u) << "few classes, so that freed pieces fit again";
}

TEST(MemoryPool, ReusesFreedPiecesOfTheSameClass) {
  Source source;
  MemoryPool pool(source.Allocate(), source.Free(), 0);
  std::byte* where = nullptr;
  for (size_t bytes : {100000, 100001, 99999}) {
    auto memory = pool.Allocate(bytes);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->bytes(), bytes);
    EXPECT_TRUE(!where || memory->data() == where);
    where = memory->data();
    EXPECT_EQ(pool.leased_bytes(), static_cast<int64_t>(MemoryPool::RoundUp(bytes)));
    EXPECT_EQ(pool.cached_bytes(), 0);
  }
  EXPECT_EQ(source.allocations, 1);
  EXPECT_EQ(pool.leased_bytes(), 0);
  EXPECT_EQ(pool.cached_bytes(), source.live);
  pool.Trim();
  EXPECT_EQ(source.live, 0);
  EXPECT_EQ(pool.cached_bytes(), 0);
}

TEST(MemoryPool, CachedPiecesMakeRoomUnderTheCap) {
  Source source;
  MemoryPool pool(source.Allocate(), source.Free(), 10 * 1024);
  {
    auto a = pool.Allocate(4096), b = pool.Allocate(4096);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(pool.Allocate(4096).error().reason(), "BUSY");
    EXPECT_GE(pool.Allocate(4096).error().detail()->retry_after_ms, 0);
  }
  EXPECT_EQ(pool.cached_bytes(), 8192);
  auto big = pool.Allocate(8 * 1024 + 512);
  ASSERT_TRUE(big) << big.error().ToString();
  EXPECT_EQ(pool.cached_bytes(), 0);
  EXPECT_LE(source.most, 10 * 1024);
}

TEST(MemoryPool, LoweringTheCapFreesWhatIsCachedAndLater) {
  Source source;
  MemoryPool pool(source.Allocate(), source.Free(), 0);
  auto kept = pool.Allocate(4096);
  { auto cached = pool.Allocate(8192); }
  ASSERT_EQ(pool.cached_bytes(), 8192);
  pool.SetCap(4096);
  EXPECT_EQ(pool.cached_bytes(), 0);
  pool.SetCap(1024);
  EXPECT_EQ(pool.leased_bytes(), 4096) << "leased memory is not touched";
  kept->Reset();
  EXPECT_EQ(pool.cached_bytes(), 0) << "a piece over the cap is not kept";
  EXPECT_EQ(source.live, 0);
  EXPECT_EQ(pool.Allocate(4096).error().reason(), "BUSY");
  pool.SetCap(0);
  EXPECT_TRUE(pool.Allocate(4096));
}

TEST(MemoryPool, OutOfRawMemoryFreesTheCacheAndTriesOnceMore) {
  Source source;
  source.limit = 16 * 1024;
  MemoryPool pool(source.Allocate(), source.Free(), 0);
  { auto cached = pool.Allocate(8192); }
  auto big = pool.Allocate(12 * 1024);
  ASSERT_TRUE(big) << "the cached piece was in the way";
  EXPECT_EQ(source.allocations, 3);
  const auto refused = pool.Allocate(8192);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "BUSY");
  EXPECT_EQ(pool.leased_bytes(), 12 * 1024) << "a refused request holds nothing";
  source.broken = true;
  EXPECT_EQ(pool.Allocate(512).error().reason(), "DEVICE_FAILED") << "other errors pass unchanged";
}

TEST(MemoryPool, ConcurrentUseStaysUnderTheCap) {
  Source source;
  constexpr int64_t kCap = 64 * 1024;
  {
    MemoryPool pool(source.Allocate(), source.Free(), kCap);
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        unsigned state = t + 1;
        std::vector<Memory> held;
        for (int i = 0; i < 500; ++i) {
          state = state * 1664525 + 1013904223;
          auto memory = pool.Allocate(1 + (state >> 16) % 20000);
          EXPECT_LE(pool.leased_bytes(), kCap);
          if (memory) {
            ++got;
            memory->data()[0] = memory->data()[memory->bytes() - 1] = std::byte{1};
            held.push_back(*std::move(memory));
          }
          // Who is refused lets go too: four threads that each kept three pieces would refuse one another to
          // the end.
          if (!held.empty() && (!memory || held.size() > 3)) held.erase(held.begin());
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_GT(got, 300);  // one thread alone gets most of its 500, whatever the others hold
    EXPECT_EQ(pool.leased_bytes(), 0);
    EXPECT_EQ(pool.cached_bytes(), source.live);
  }
  EXPECT_EQ(source.live, 0);
  EXPECT_GT(source.frees, 0);
}

}  // namespace
}  // namespace tilewire::engine

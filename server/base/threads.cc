#include "server/base/threads.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace tilewire {

int SmallCallsAtOnce(int cores) {
  // More than a third of four did up to two thirds more calls, for nearly twice the time of cores; of sixteen
  // no more (tests/bench/RESULTS.md).
  constexpr int kPart = 3;
  return cores < kFewCores ? 2 : (cores + kPart - 1) / kPart;
}

int SmallLanes(int cores) {
  return std::min(SmallCallsAtOnce(cores), 4);
}

Status CheckThreads(int count) {
  struct Gate {
    Mutex mutex;
    CondVar opened;
    bool open TILEWIRE_GUARDED_BY(mutex) = false;
  } gate;
  std::vector<std::thread> threads;
  Status status;
  try {
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&gate] {
        const MutexLock lock(gate.mutex);
        while (!gate.open) gate.opened.Wait(gate.mutex);
      });
  } catch (const std::system_error& error) {
    status = Status(Code::kUnavailable, "INTERNAL_ERROR",
                    "only " + std::to_string(threads.size()) + " of " + std::to_string(count) +
                        " further threads can be made (raise ulimit -u, TasksMax= or the container's limit "
                        "of processes): " +
                        error.what());
  }
  {
    const MutexLock lock(gate.mutex);
    gate.open = true;
  }
  gate.opened.NotifyAll();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace tilewire

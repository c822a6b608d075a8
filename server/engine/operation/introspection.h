// Questions about a device's compiled kernels: which ones an operation launches, and how.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/operation/descriptor.h"
#include "server/base/mutex.h"
#include "server/engine/device/device.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// One launch, and the kernel that it runs.
struct KernelLaunch {
  std::string group;      ///< folder below kernels/: "rmse", "ladder/rmse"
  std::string operation;  ///< what it was chosen for: "rmse f32 (1024, 1024, 16) axes 0 1"
  std::string part;       ///< "range 0 of 8", "finish"; empty for the ladder
  KernelInfo kernel;
};

/// Answers one question at a time on a thread of its own, which starts with the first question: describing a
/// kernel loads it, which takes milliseconds and may wait for the device. Thread-safe.
class Introspection {
 public:
  using OnKernels = std::function<void(Result<std::vector<KernelLaunch>>)>;

  /// `operations`: those of the catalogue, in its order. Both outlive it.
  Introspection(Device* device, std::span<const Descriptor* const> operations)
      : device_(device), operations_(operations) {}
  /// Answers what still waits UNAVAILABLE, then waits for the question at hand.
  ~Introspection();
  Introspection(const Introspection&) = delete;
  Introspection& operator=(const Introspection&) = delete;

  /// The launches of the operation's first and last range and of its finish; the ranges between launch what
  /// the first does. Equal launches are told once. Empty where the device has no kernels of its own.
  /// Calls `on_kernels` exactly once: on the thread, on this one where too many questions wait (`BUSY`), or
  /// in the destructor. `text` tells the operation to people, see Descriptor::Text.
  void Describe(std::unique_ptr<Operation> operation, std::string text, OnKernels on_kernels);
  /// The catalogue: the examples of every operation, and the ladder. Computed once.
  void DescribeCatalogue(OnKernels on_kernels);

 private:
  struct Question {
    std::unique_ptr<Operation> operation;  ///< null: the catalogue
    std::string text;
    OnKernels on_kernels;
  };

  void Ask(Question question);
  void Serve();
  Result<std::vector<KernelLaunch>> Answer(const Question& question);

  Device* const device_;
  const std::span<const Descriptor* const> operations_;
  std::optional<std::vector<KernelLaunch>> catalogue_;  ///< used on the thread only
  Mutex mutex_;
  CondVar wake_;
  std::deque<Question> questions_ TILEWIRE_GUARDED_BY(mutex_);
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilewire::engine

#include "server/engine/operation/introspection.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace tilewire::engine {
namespace {

/// Questions that may wait; each holds a plan, and nobody has reason to ask that often.
constexpr size_t kMaxQuestions = 64;
constexpr int64_t kCatalogueRetryMs = 250;

bool SameLaunch(const KernelInfo& a, const KernelInfo& b) {
  return a.name == b.name && a.dynamic_shared_bytes == b.dynamic_shared_bytes &&
         std::equal(std::begin(a.grid), std::end(a.grid), std::begin(b.grid)) &&
         std::equal(std::begin(a.block), std::end(a.block), std::begin(b.block));
}

/// Appends the launches of `work` that `all` does not list yet from `begin` on.
Status AppendWork(Device* device, const Work& work, const KernelLaunch& common, size_t begin,
                  std::vector<KernelLaunch>* all) {
  TILEWIRE_ASSIGN_OR_RETURN(auto kernels, device->DescribeWork(work));
  for (KernelInfo& kernel : kernels) {
    const auto listed = std::find_if(all->begin() + static_cast<std::ptrdiff_t>(begin), all->end(),
                                     [&](const auto& other) { return SameLaunch(other.kernel, kernel); });
    if (listed != all->end()) continue;
    all->push_back(common);
    all->back().kernel = std::move(kernel);
  }
  return {};
}

Status AppendOperation(Device* device, const Operation& operation, const std::string& text,
                       std::vector<KernelLaunch>* all) {
  // A contract is named as the folder of its kernels: "rmse.1".
  const std::string_view version = operation.numeric_version();
  KernelLaunch launch{.group = std::string(version.substr(0, version.find('.'))), .operation = text};
  const size_t begin = all->size();
  const int64_t ranges = operation.range_count();
  for (const int64_t range : {int64_t{0}, ranges - 1}) {
    launch.part = operation.range_finishes()
                      ? "whole"
                      : "range " + std::to_string(range) + " of " + std::to_string(ranges);
    TILEWIRE_RETURN_IF_ERROR(AppendWork(device, {&operation, {range}, {}}, launch, begin, all));
  }
  if (!operation.has_finish()) return {};
  launch.part = "finish";
  return AppendWork(device, {&operation, Step::Finish(), {}}, launch, begin, all);
}

Result<std::vector<KernelLaunch>> Catalogue(Device* device, std::span<const Descriptor* const> operations) {
  std::vector<KernelLaunch> all;
  for (const Descriptor* const descriptor : operations) {
    for (Example& example : descriptor->examples()) {
      const std::string text = descriptor->Text(example.operands, example.attributes);
      TILEWIRE_ASSIGN_OR_RETURN(const auto operation,
                                descriptor->Make(example.operands, std::move(example.attributes)));
      TILEWIRE_RETURN_IF_ERROR(AppendOperation(device, *operation, text, &all));
    }
  }
  TILEWIRE_ASSIGN_OR_RETURN(auto ladder, device->DescribeLadder());
  for (LadderKernel& kernel : ladder)
    all.push_back({std::move(kernel.group), std::move(kernel.step), "", std::move(kernel.kernel)});
  return all;
}

}  // namespace

Introspection::~Introspection() {
  std::deque<Question> unanswered;
  {
    MutexLock lock(mutex_);
    stop_ = true;
    unanswered.swap(questions_);
  }
  wake_.NotifyOne();
  for (const Question& question : unanswered)
    question.on_kernels(Fail(Status(Code::kUnavailable, "DRAINING", "the server is going away")));
  if (thread_.joinable()) thread_.join();
}

void Introspection::Describe(std::unique_ptr<Operation> operation, std::string text, OnKernels on_kernels) {
  Ask({std::move(operation), std::move(text), std::move(on_kernels)});
}

void Introspection::DescribeCatalogue(OnKernels on_kernels) {
  Ask({nullptr, "", std::move(on_kernels)});
}

void Introspection::Ask(Question question) {
  bool no_thread = false;
  {
    MutexLock lock(mutex_);
    if (questions_.size() < kMaxQuestions) {
      try {
        if (!thread_.joinable()) {
          thread_ = std::thread([this] { Serve(); });
          pthread_setname_np(thread_.native_handle(), "tw-kernels");
        }
        questions_.push_back(std::move(question));
        wake_.NotifyOne();
        return;
      } catch (const std::system_error&) {
        no_thread = true;
      }
    }
  }
  if (no_thread) return question.on_kernels(Fail(Busy("no thread can be made for it", kCatalogueRetryMs)));
  question.on_kernels(
      Fail(Busy("too many questions about kernels wait; allowed: " + std::to_string(kMaxQuestions),
                kCatalogueRetryMs)));
}

void Introspection::Serve() {
  RelockableMutexLock lock(mutex_);
  while (true) {
    while (!stop_ && questions_.empty()) wake_.Wait(mutex_);
    if (questions_.empty()) return;
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.Unlock();
    question.on_kernels(Answer(question));
    lock.Lock();
  }
}

Result<std::vector<KernelLaunch>> Introspection::Answer(const Question& question) {
  if (question.operation) {
    std::vector<KernelLaunch> launches;
    TILEWIRE_RETURN_IF_ERROR(AppendOperation(device_, *question.operation, question.text, &launches));
    return launches;
  }
  if (!catalogue_) {
    TILEWIRE_ASSIGN_OR_RETURN(catalogue_, Catalogue(device_, operations_));
  }
  return *catalogue_;
}

}  // namespace tilewire::engine

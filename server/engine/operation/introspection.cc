#include "server/engine/operation/introspection.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tilewire::engine {
namespace {

/// Questions that may wait; each holds a plan, and nobody has reason to ask that often.
constexpr size_t kMaxQuestions = 64;
constexpr int64_t kRetryAfterMs = 250;

struct Example {
  DType dtype;
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;
};

/// Every dtype over contiguous data, then the geometries that need kernels of their own.
std::vector<Example> RmseExamples() {
  std::vector<Example> examples;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) examples.push_back({info.dtype, {4096, 4096}, {}});
  for (Example example : std::initializer_list<Example>{
           {DType::kF32, {1024}, {}},                // a small request
           {DType::kF32, {16, 1024, 1024}, {1, 2}},  // contiguous segments
           {DType::kF32, {1024, 1024, 16}, {0, 1}},  // columns: the batch axis is the fastest
           {DType::kF32, {4096, 4096}, {0}},         // many columns
           {DType::kF32, {64, 256, 1024}, {1}},      // batch axes on both sides
           {DType::kF32, {256, 64, 1024}, {0, 2}},   // reduced axes on both sides
           {DType::kF32, {1 << 20, 16}, {1}}})       // many tiny segments
    examples.push_back(std::move(example));
  return examples;
}

/// A matrix of every element size, then permutations that need kernels of their own.
std::vector<Example> TransposeExamples() {
  return {
      {DType::kU8, {4096, 4096}, {}},
      {DType::kU16, {4096, 4096}, {}},
      {DType::kF32, {4096, 4096}, {}},
      {DType::kF64, {4096, 4096}, {}},
      {DType::kC128, {4096, 4096}, {}},
      {DType::kF32, {64, 64}, {}},     // a small request
      {DType::kU8, {4099, 4097}, {}},  // odd extents
      {DType::kF32, {4099, 4097}, {}},
      {DType::kF32, {1 << 20, 3}, {}},  // a short fast axis, there and back
      {DType::kF32, {3, 1 << 20}, {}},
      {DType::kF32, {16, 1024, 1024}, {0, 2, 1}},      // the leading axis is kept
      {DType::kF32, {256, 512, 64}, {1, 0, 2}},        // the fastest axis is kept
      {DType::kF32, {64, 100, 50, 60}, {3, 2, 1, 0}},  // four axes
      {DType::kF32, {64, 100, 50, 60}, {2, 0, 3, 1}},
  };
}

std::vector<Example> GaussianExamples() {
  std::vector<Example> examples;
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const int64_t elements : {1024, (1 << 24), (1 << 24) - 3})
      examples.push_back({dtype, {elements}, {}});
  return examples;
}

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
  Buffers nowhere;
  nowhere.operands.assign(operation.operands().size(), nullptr);
  // A contract is named as the folder of its kernels: "rmse.1".
  const std::string_view version = operation.numeric_version();
  KernelLaunch launch{.group = std::string(version.substr(0, version.find('.'))), .operation = text};
  const size_t begin = all->size();
  const int64_t ranges = operation.range_count();
  for (const int64_t range : {int64_t{0}, ranges - 1}) {
    const Work work = operation.range_work(range, nowhere);
    launch.part = std::holds_alternative<RmseWhole>(work)
                      ? "whole"
                      : "range " + std::to_string(range) + " of " + std::to_string(ranges);
    TILEWIRE_RETURN_IF_ERROR(AppendWork(device, work, launch, begin, all));
  }
  const auto finish = operation.finish_work(nowhere);
  if (!finish) return {};
  launch.part = "finish";
  return AppendWork(device, *finish, launch, begin, all);
}

/// `make(spec, axes)` gives the operation of an example.
template <typename Make>
Status AppendExamples(Device* device, const std::vector<Example>& examples, const Make& make,
                      std::vector<KernelLaunch>* all) {
  for (const Example& example : examples) {
    TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec spec, MakeSpec(example.dtype, example.dims));
    TILEWIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Operation> operation, make(spec, example.axes));
    const std::string text = OperationText(operation->name(), spec, example.axes);
    TILEWIRE_RETURN_IF_ERROR(AppendOperation(device, *operation, text, all));
  }
  return {};
}

using Made = Result<std::unique_ptr<Operation>>;

Result<std::vector<KernelLaunch>> Catalogue(Device* device) {
  std::vector<KernelLaunch> all;
  const auto rmse = [](const ArraySpec& spec, const std::vector<int32_t>& axes) -> Made {
    TILEWIRE_ASSIGN_OR_RETURN(auto plan, rmse::Plan::Make(spec, axes, rmse::Output::kRmse));
    return MakeRmse(std::move(plan));
  };
  const auto transpose = [](const ArraySpec& spec, const std::vector<int32_t>& axes) -> Made {
    TILEWIRE_ASSIGN_OR_RETURN(auto plan, transpose::Plan::Make(spec, axes));
    return MakeTranspose(std::move(plan));
  };
  const auto gaussian = [](const ArraySpec& spec, const std::vector<int32_t>&) -> Made {
    TILEWIRE_ASSIGN_OR_RETURN(auto plan, gaussian::Plan::Make(spec, 0, 1));
    return MakeGaussian(std::move(plan));
  };
  TILEWIRE_RETURN_IF_ERROR(AppendExamples(device, RmseExamples(), rmse, &all));
  TILEWIRE_RETURN_IF_ERROR(AppendExamples(device, TransposeExamples(), transpose, &all));
  TILEWIRE_RETURN_IF_ERROR(AppendExamples(device, GaussianExamples(), gaussian, &all));
  TILEWIRE_ASSIGN_OR_RETURN(auto ladder, device->DescribeLadder());
  for (LadderKernel& kernel : ladder)
    all.push_back({std::move(kernel.group), std::move(kernel.step), "", std::move(kernel.kernel)});
  return all;
}

}  // namespace

std::string OperationText(std::string_view name, const ArraySpec& operand, std::span<const int32_t> axes) {
  std::string text(name);
  text += " " + std::string(Name(operand.dtype)) + " " + operand.shape.ToString();
  if (!axes.empty()) text += " axes";
  for (const int32_t axis : axes) text += " " + std::to_string(axis);
  return text;
}

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
  {
    MutexLock lock(mutex_);
    if (questions_.size() < kMaxQuestions) {
      questions_.push_back(std::move(question));
      if (!thread_.joinable()) {
        thread_ = std::thread([this] { Serve(); });
        pthread_setname_np(thread_.native_handle(), "tw-kernels");
      }
      wake_.NotifyOne();
      return;
    }
  }
  question.on_kernels(Fail(Busy(
      "too many questions about kernels wait; allowed: " + std::to_string(kMaxQuestions), kRetryAfterMs)));
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
    TILEWIRE_ASSIGN_OR_RETURN(catalogue_, Catalogue(device_));
  }
  return *catalogue_;
}

}  // namespace tilewire::engine

// Prints which kernel takes which of the layouts of `tilewire_kernel_bench '^layouts/'`, as the table of
// kernels/rmse/CUDA.md.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "kernels/bench/layouts.h"
#include "kernels/rmse/choice.h"

namespace tilewire::bench {
namespace {

std::string ChosenFor(const RmseLayout& layout, int* percent) {
  const auto spec = MakeSpec(layout.dtype, layout.shape);
  const auto plan = rmse::Plan::Make(*spec, layout.axes, rmse::Output::kRmse);
  rmse::cuda::Task task{};
  task.kind = rmse::cuda::KindOf(layout.dtype).kind;
  task.layout = plan->layout();
  task.range = plan->whole();
  task.whole = true;
  const rmse::cuda::Choice choice = rmse::cuda::Choose(task);
  *percent = static_cast<int>(std::lround(choice.share * 100));
  return rmse::cuda::ShapeName(choice);
}

void Print() {
  std::vector<std::string> kernels;  // in the order of the first layout
  std::map<std::string, std::string> layouts;
  for (const RmseLayout& layout : RmseLayouts()) {
    int percent = 0;
    const std::string kernel = ChosenFor(layout, &percent);
    std::string& text = layouts[kernel];
    if (text.empty()) kernels.push_back(kernel);
    text += (text.empty() ? "" : " · ") + layout.name() + ": " + std::to_string(percent);
  }
  std::printf("| kernel, shape | layouts: expected share of the read rate, %% |\n|---|---|\n");
  for (const std::string& kernel : kernels)
    std::printf("| %s | %s |\n", kernel.c_str(), layouts[kernel].c_str());
}

}  // namespace
}  // namespace tilewire::bench

int main() {
  tilewire::bench::Print();
}

#include "client/cpp/operations.h"

#include <algorithm>
#include <cmath>

#include "kernels/compare/problem.h"
#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "tilewire/v1/types.pb.h"

namespace tilewire::client {
namespace {

constexpr std::string_view kSource = ".npy file or array:ID";

/// All axes reduced give one value, whatever they are.
std::optional<std::vector<ArraySpec>> RmseOfAny(const Attributes& attributes) {
  if (!attributes.integers("axes").empty()) return std::nullopt;
  return std::vector{ArraySpec{DType::kF64, {}}};
}

std::vector<compare::Metric> MetricsOf(const Attributes& attributes) {
  std::vector<compare::Metric> metrics;
  for (const int32_t metric : attributes.integers("metrics"))
    metrics.push_back(static_cast<compare::Metric>(metric));
  for (int metric = 0; attributes.integers("metrics").empty() && metric < compare::kMetrics; ++metric)
    metrics.push_back(static_cast<compare::Metric>(metric));
  return metrics;
}

std::vector<std::string_view> MetricWords() {
  std::vector<std::string_view> words;
  for (int metric = 0; metric < compare::kMetrics; ++metric)
    words.push_back(compare::Name(static_cast<compare::Metric>(metric)));
  return words;
}

std::vector<std::string> MetricNames(const Attributes& attributes) {
  std::vector<std::string> names;
  for (const compare::Metric metric : MetricsOf(attributes)) names.emplace_back(compare::Name(metric));
  return names;
}

std::optional<std::vector<ArraySpec>> CompareOfAny(const Attributes& attributes) {
  if (!attributes.integers("axes").empty()) return std::nullopt;
  std::vector<ArraySpec> specs;
  for (const compare::Metric metric : MetricsOf(attributes)) specs.push_back({compare::TypeOf(metric), {}});
  return specs;
}

/// Peak signal-to-noise ratio in dB, 10 log10(range² / mse); infinite for equal arrays.
double Psnr(double mse, double range) {
  return 20 * std::log10(range) - 10 * std::log10(mse);
}

double NormalisedRmse(double rmse, double range) {
  return rmse / range;
}

/// The bytes of a Fortran order array are the C order array with reversed axes, so only the permutation
/// changes.
void TransposeAsStored(Attributes* attributes, ArraySource* operand) {
  const int rank = operand->spec().shape.rank();
  const auto given = attributes->integers("axes");
  std::vector<int32_t> axes;
  for (int i = 0; i < rank; ++i) {
    int32_t axis = given.empty() ? rank - 1 - i : given[static_cast<size_t>(i)];
    if (axis < 0) axis += rank;
    axes.push_back(rank - 1 - axis);
  }
  attributes->Set("axes", std::move(axes));
  *operand = operand->AsStored();
}

const std::vector<OperationInfo>& Table() {
  static const std::vector<OperationInfo> table = {
      {.descriptor = &rmse::kDescriptor,
       .member = v1::Operation::kRmseFieldNumber,
       .command = "rmse",
       .about = "Root mean square error of two arrays, the same bits everywhere",
       .operands = {{"A", kSource}, {"B", ".npy file or array:ID of the same dtype and shape"}},
       .flags = {{.attribute = "axes",
                  .names = "--axis,--axes",
                  .help = "Axes to reduce, such as 1,2 or -1 (default: all)"},
                 {.attribute = "output",
                  .names = "--output",
                  .help = "Which value: rmse, mse or sum-squares",
                  .words = {"rmse", "mse", "sum-squares"}}},
       .shown = Shown::kValues,
       .json = "values",
       .published = rmse::PublishedCases,
       .results_of_any = RmseOfAny},
      {.descriptor = &transpose::kDescriptor,
       .member = v1::Operation::kTransposeFieldNumber,
       .command = "transpose",
       .about = "Permute the axes of an array",
       .operands = {{"IN", kSource}},
       .flags = {{.attribute = "axes",
                  .names = "--axes,--axis",
                  .help = "Axis i of the result is input axis AXES[i] (default: reversed)"}},
       .study_square = true,
       .published = transpose::PublishedCases,
       .as_stored = TransposeAsStored},
      {.descriptor = &gaussian::kDescriptor,
       .member = v1::Operation::kGaussianPdfFieldNumber,
       .command = "gaussian-pdf",
       .about = "Density of the normal distribution at every element of an array (f32 or f64)",
       .operands = {{"IN", kSource}},
       .flags = {{.attribute = "mean",
                  .names = "--mean",
                  .help = "Of the distribution",
                  .value = "M",
                  .required = true},
                 {.attribute = "stddev",
                  .names = "--stddev",
                  .help = "Of the distribution, over 0",
                  .value = "S",
                  .required = true,
                  .positive = true}},
       .study = {{"mean", 0.25}, {"stddev", 1.5}},
       .published = gaussian::PublishedCases},
      {.descriptor = &compare::kDescriptor,
       .member = v1::Operation::kCompareFieldNumber,
       .command = "compare",
       .about = "All error metrics of two arrays in one pass, a line `name value` each",
       .operands = {{"A", kSource}, {"B", ".npy file or array:ID of the same dtype and shape"}},
       .flags = {{.attribute = "axes",
                  .names = "--axis,--axes",
                  .help = "Axes to reduce, such as 1,2 or -1 (default: all)"},
                 {.attribute = "metrics",
                  .names = "--metrics",
                  .help = "Which, in what order, such as rmse,max_abs (default: all)",
                  .words = MetricWords()}},
       .shown = Shown::kNamed,
       .json = "metrics",
       .result_names = MetricNames,
       .derived = {{"psnr", "mse", Psnr}, {"nrmse", "rmse", NormalisedRmse}},
       .derived_by =
           {.names = "--data-range",
            .help = "Largest less smallest value that the data can have: adds psnr (dB, of mse) and nrmse "
                    "(rmse divided by it)",
            .value = "R",
            .positive = true},
       .published = compare::PublishedCases,
       .results_of_any = CompareOfAny},
  };
  return table;
}

const OperationInfo* FindRow(const auto& is_it) {
  const auto found = std::ranges::find_if(Table(), is_it);
  return found == Table().end() ? nullptr : &*found;
}

}  // namespace

std::span<const OperationInfo> Operations() {
  return Table();
}

const OperationInfo* FindOperation(const Descriptor& descriptor) {
  return FindRow([&](const OperationInfo& row) { return row.descriptor == &descriptor; });
}

const OperationInfo* FindOperation(std::string_view command) {
  return FindRow([&](const OperationInfo& row) { return row.command == command; });
}

const Flag* FindFlag(const OperationInfo& operation, std::string_view attribute) {
  const auto found = std::ranges::find(operation.flags, attribute, &Flag::attribute);
  return found == operation.flags.end() ? nullptr : &*found;
}

std::string Listed(std::span<const std::string> words, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : std::string(i + 1 < words.size() ? ", " : last)) + words[i];
  return text;
}

std::vector<std::string> Commands() {
  std::vector<std::string> commands;
  for (const OperationInfo& operation : Operations()) commands.emplace_back(operation.command);
  return commands;
}

std::string CommandNames(std::string_view last) {
  return Listed(Commands(), last);
}

}  // namespace tilewire::client

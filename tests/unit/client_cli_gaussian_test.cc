// The program: `gaussian-pdf` and `info --kernels`.
#include <cmath>
#include <cstring>

#include "kernels/gaussian/gaussian.h"
#include "tests/unit/client_cli_testing.h"

namespace tilewire::client {
namespace {

using testing::Cli;
using testing::FakeBehaviour;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Ran;
using testing::ReadFile;
using testing::Spec;
using ::testing::StartsWith;
using testing::WriteNpy;

/// The .npy file that the host kernel would write.
std::string Expected(const ArraySpec& spec, const void* in, double mean, double stddev) {
  const auto plan = gaussian::Plan::Make(spec, mean, stddev).value();
  std::string out(static_cast<size_t>(spec.bytes()), '\0');
  gaussian::HostRange(plan, plan.whole(), 0, gaussian::HostItems(plan, plan.whole()), in, out.data());
  return FormatNpyHeader(spec) + out;
}

TEST_F(Cli, GaussianPdfWritesAFile) {
  const Ran ran = Run({"gaussian-pdf", A(), dir_.File("g.npy"), "--mean", "-1.5", "--stddev", "0.1"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_TRUE(ReadFile(dir_.File("g.npy")) == Expected(pair_.spec, pair_.a.data(), -1.5, 0.1));
}

TEST_F(Cli, GaussianPdfOfLargeAndSmallArraysOfBothDtypes) {
  for (const auto& spec : {Spec(DType::kF32, {}), Spec(DType::kF64, {7}), Spec(DType::kF64, {401, 503})}) {
    const std::string in = testing::Pattern(static_cast<size_t>(spec.bytes()));
    WriteNpy(dir_.File("x.npy"), spec, in.data());
    const Ran ran = Run({"gaussian-pdf", dir_.File("x.npy"), dir_.File("g.npy"), "--mean", "1e-3", "--stddev",
                         "12", "--json", "--timing"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(ReadFile(dir_.File("g.npy")) == Expected(spec, in.data(), 1e-3, 12));
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["out"], dir_.File("g.npy"));
    EXPECT_EQ(json["numeric_version"], "gaussian.1");
    EXPECT_EQ(json["dtype"], Name(spec.dtype));
    EXPECT_EQ(json["timing"]["streamed"], spec.shape.elements() > 100'000);
    EXPECT_THAT(ran.err, HasSubstr("bottleneck"));
  }
}

TEST_F(Cli, GaussianPdfNumbersAreRoundedOnce) {
  // Halfway between two doubles but for a digit beyond long double's reach.
  const std::string text = "1.00000000000000011102230246251565404236316680908203126";
  const double x = 9;
  WriteNpy(dir_.File("x.npy"), Spec(DType::kF64, {1}), &x);
  const Ran ran =
      Run({"gaussian-pdf", dir_.File("x.npy"), dir_.File("g.npy"), "--mean", text, "--stddev", "1"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const std::string got = ReadFile(dir_.File("g.npy"));
  EXPECT_TRUE(got == Expected(Spec(DType::kF64, {1}), &x, 1.0000000000000002, 1));
  EXPECT_FALSE(got == Expected(Spec(DType::kF64, {1}), &x, 1, 1));
}

TEST_F(Cli, GaussianPdfUsageErrorsExitWith2) {
  const std::string out = dir_.File("g.npy"), number = "any finite number", over = " greater than 0";
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{A(), out, "--stddev", "1"}, "--mean is required\n"},
      {{A(), out, "--mean", "1"}, "--stddev is required\n"},
      {{A(), "--mean", "1", "--stddev", "1"}, "OUT is required, or --store\n"},
      {{A(), out, "--mean", "x", "--stddev", "1"}, "--mean: 'x' is not a number\n"},
      {{A(), out, "--mean", "", "--stddev", "1"}, "--mean: '' is not a number\n"},
      {{A(), out, "--mean", "nan", "--stddev", "1"},
       "--mean: 'nan' is out of range; allowed: " + number + "\n"},
      {{A(), out, "--mean=-inf", "--stddev", "1"},
       "--mean: '-inf' is out of range; allowed: " + number + "\n"},
      {{A(), out, "--mean", "1e999", "--stddev", "1"}, "--mean: '1e999' is out of range; allowed: "},
      {{A(), out, "--mean", "0", "--stddev", "0"},
       "--stddev: '0' is out of range; allowed: " + number + over},
      {{A(), out, "--mean", "0", "--stddev", "-1"},
       "--stddev: '-1' is out of range; allowed: " + number + over},
      {{A(), out, "--mean", "0", "--stddev", "nan"}, "--stddev: 'nan' is out of range; allowed: "},
      {{A(), out, "--mean", "0", "--stddev", "inf"}, "--stddev: 'inf' is out of range; allowed: "},
      {{A(), out, "--mean", "0", "--sigma", "1"}, "'--sigma' is no option\n"},
  };
  for (const auto& [arguments, says] : cases) {
    std::vector<std::string> all{"gaussian-pdf"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = Run(all);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(all);
    EXPECT_THAT(ran.err, StartsWith(says)) << ::testing::PrintToString(all);
  }
  const auto exit_code = [&](const std::string& in, const std::string& to) {
    return Run({"gaussian-pdf", in, to, "--mean", "0", "--stddev", "1"}).exit_code;
  };
  EXPECT_EQ(exit_code(dir_.File("none.npy"), out), 2);
  EXPECT_EQ(exit_code(A(), "/nowhere/g.npy"), 2);
  EXPECT_EQ(exit_code(A(), "/dev/null"), 2);
  EXPECT_EQ(server_.log().calls + server_.log().streams, 0);
}

TEST_F(Cli, GaussianPdfOfAWrongDtypeExitsWith1AndLeavesNoFile) {
  WriteNpy(dir_.File("i.npy"), Spec(DType::kI32, {3}), pair_.a.data());
  const size_t files = dir_.Count();
  const Ran ran =
      Run({"gaussian-pdf", dir_.File("i.npy"), dir_.File("g.npy"), "--mean", "0", "--stddev", "1"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, "error: INVALID_ARGUMENT: dtype is i32; allowed: f32 or f64\n");
  EXPECT_EQ(dir_.Count(), files);
  FakeBehaviour behaviour;
  behaviour.lie = FakeBehaviour::Lie::kShortData;
  server_.Behave(behaviour);
  EXPECT_EQ(Run({"gaussian-pdf", A(), dir_.File("g.npy"), "--mean", "0", "--stddev", "1"}).exit_code, 1);
  EXPECT_EQ(dir_.Count(), files);
}

TEST_F(Cli, KernelsAreATable) {
  const Ran ran = Run({"info", "--kernels"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  std::istringstream lines(ran.out);
  std::string device, titles, range, step;
  std::getline(lines, device);
  std::getline(lines, titles);
  std::getline(lines, range);
  std::getline(lines, step);
  EXPECT_EQ(device, "cuda:7");
  EXPECT_THAT(titles,
              StartsWith("group        operation          part          grid     block    registers"));
  EXPECT_THAT(range, StartsWith("rmse         rmse f32 (64, 64)  range 0 of 1  132 x 2  132 x 2  40 "));
  EXPECT_THAT(range, HasSubstr("1024 + 2048"));
  EXPECT_THAT(range, HasSubstr("sm_90/ptx_75"));
  EXPECT_THAT(range, HasSubstr("75%"));
  EXPECT_THAT(step, StartsWith("ladder/rmse "));
  EXPECT_EQ(step.substr(step.rfind(' ') + 1), "Naive");
  EXPECT_EQ(titles.find("kernel"), step.rfind("Naive")) << "columns are aligned";
}

TEST_F(Cli, KernelsOfAnOperation) {
  const auto asked = [&](const std::vector<std::string>& arguments) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["device"], "cuda:7");
    EXPECT_EQ(json["kernels"][0]["registers"], 40);
    EXPECT_EQ(json["kernels"][0]["grid"], nlohmann::json({132, 2, 1}));
    return json["kernels"][0]["name"].get<std::string>();
  };
  EXPECT_EQ(asked({"info", "--kernels", "--json"}), "");
  EXPECT_EQ(asked({"--json", "info", "--kernels", "rmse", "--shape", "4,5", "--axes", "-1"}),
            "rmse { axes: -1 } operands { dtype: DTYPE_F32 shape: 4 shape: 5 } "
            "operands { dtype: DTYPE_F32 shape: 4 shape: 5 }");
  EXPECT_EQ(asked({"info", "--kernels", "transpose", "--shape", "9", "--dtype", "c128", "--json"}),
            "transpose { } operands { dtype: DTYPE_C128 shape: 9 }");
  EXPECT_EQ(asked({"info", "--kernels", "gaussian-pdf", "--shape", "9", "--dtype", "f64", "--json"}),
            "gaussian_pdf { stddev: 1 } operands { dtype: DTYPE_F64 shape: 9 }");
}

TEST_F(Cli, KernelsOfACpu) {
  FakeBehaviour behaviour;
  behaviour.no_kernels = true;
  server_.Behave(behaviour);
  EXPECT_EQ(Run({"info", "--kernels"}).out, "cpu has no GPU kernels: it runs host code\n");
  const auto json = nlohmann::json::parse(Run({"info", "--kernels", "--json"}).out);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["kernels"], nlohmann::json::array());
}

TEST_F(Cli, KernelQuestionsThatAreWrongExitWith2) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--kernels", "sort", "--shape", "4"},
                                             {"--kernels", "rmse"},
                                             {"--shape", "4"},
                                             {"--kernels", "--shape", "4"},
                                             {"--kernels", "rmse", "--shape", ""},
                                             {"--kernels", "rmse", "--shape", "4,x"},
                                             {"--kernels", "rmse", "--shape", "4,0"},
                                             {"--kernels", "rmse", "--shape", "4", "--dtype", "float"},
                                             {"--kernels", "rmse", "--shape", "4", "--axes", "x"}}) {
    std::vector<std::string> all{"info"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = Run(all);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(all);
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_EQ(server_.log().calls, 0);
}

}  // namespace
}  // namespace tilewire::client

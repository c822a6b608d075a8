// `tilewire compare` as users and pipelines meet it: metrics by name, limits, exit codes.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "client/cpp/npy.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int exit_code;
  std::string out, err;
};

class CompareProgram : public ::testing::Test {
 protected:
  CompareProgram() {
    std::filesystem::create_directories(directory_);
    Write("a.npy", {1, 2, 3, 4});
    Write("b.npy", {1, 2, 5, 3});
    Write("nan.npy", {1, NAN, 3, 4});
  }
  ~CompareProgram() override { std::filesystem::remove_all(directory_); }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  /// Two rows of f64.
  void Write(const std::string& name, const std::vector<double>& values) const {
    std::ofstream(File(name), std::ios::binary)
        << client::FormatNpyHeader(MakeSpec(DType::kF64, std::vector<int64_t>{2, 2}).value())
        << std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  }
  Ran Compare(const std::vector<std::string>& options, const std::string& other = "b.npy") const {
    std::vector<std::string> arguments{"--server", address_, "compare", File("a.npy"), File(other)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Program program(TILEWIRE_TILEWIRE, std::move(arguments));
    const int exit_code = program.Wait(120);
    return {exit_code, program.out(), program.err()};
  }
  void ExpectUsageError(const std::vector<std::string>& options, const std::string& words) const {
    const Ran ran = Compare(options);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr(words));
  }

  const std::string directory_ = ::testing::TempDir() + "tilewire-compare-" + std::to_string(getpid());
  Program server_{{"--device", "cpu", "--listen", "localhost:0"}};
  const std::string address_ = server_.Ready().at(0);
};

TEST_F(CompareProgram, PrintsTheMetricsAskedForInTheirOrder) {
  EXPECT_EQ(Compare({"--metrics", "unequal_pairs,max_abs,sum,max_abs_index"}).out,
            "unequal_pairs 2\nmax_abs 2\nsum -1\nmax_abs_index 2\n");
  EXPECT_EQ(Compare({"--axis", "1", "--metrics", "sum_abs,max_abs"}).out, "sum_abs 0 3\nmax_abs 0 2\n");
  const Ran all = Compare({});
  EXPECT_THAT(all.out, HasSubstr("rmse 1.11803398874989"));
  EXPECT_THAT(all.out, HasSubstr("nan_pairs 0\nunequal_pairs 2\n"));
  const Ran psnr = Compare({"--metrics", "rmse,mse", "--data-range", "4"});
  EXPECT_EQ(psnr.exit_code, 0) << psnr.err;
  EXPECT_THAT(psnr.out, HasSubstr("psnr 11.0"));
}

TEST_F(CompareProgram, LimitsDecideTheExitCode) {
  EXPECT_EQ(Compare({"--fail-above", "max_abs=2"}).exit_code, 0) << "as large as allowed";
  const Ran above = Compare({"--fail-above", "max_abs=1.5", "--fail-above", "unequal_pairs=2"});
  EXPECT_EQ(above.exit_code, 3);
  EXPECT_THAT(above.err, HasSubstr("max_abs is 2; allowed: 1.5 at most"));
  EXPECT_THAT(above.out, HasSubstr("max_abs 2\n")) << "the values are printed all the same";
  EXPECT_EQ(Compare({"--axis", "1", "--fail-above", "max_abs=1"}).exit_code, 3) << "one value of a batch";
  EXPECT_EQ(Compare({"--fail-above", "rmse=1e300"}, "nan.npy").exit_code, 3) << "NaN is above all";
  EXPECT_EQ(Compare({"--data-range", "4", "--fail-above", "psnr=11.5"}).exit_code, 0)
      << "what is derived too";
}

TEST_F(CompareProgram, WrongNamesAndLimitsAreUsageErrors) {
  ExpectUsageError({"--metrics", "rmse,large"}, "--metrics: 'large' is none of: rmse, mse, sum_squares");
  ExpectUsageError({"--metrics", "rmse,rmse"}, "--metrics: 'rmse' is there twice; allowed: each once");
  ExpectUsageError({"--metrics", "rmse", "--metrics", "mse"}, "--metrics: is given 2 times; allowed: once");
  ExpectUsageError({"--metrics", "rmse", "--fail-above", "mse=1"},
                   "--fail-above: 'mse=1' is no NAME=LIMIT; names: rmse");
  ExpectUsageError({"--fail-above", "rmse"}, "'rmse' is no NAME=LIMIT");
  ExpectUsageError({"--fail-above", "rmse=small"}, "--fail-above");
  ExpectUsageError({"--data-range", "0"}, "--data-range");
}

}  // namespace
}  // namespace tilewire::testing

// `--trace` and `--timeline`: files that appear whole or not at all, and what is refused before the call.
#include <filesystem>
#include <set>

#include "tests/unit/client_cli_testing.h"
#include "tests/unit/xml_check.h"

namespace tilewire::client {
namespace {

using testing::Cli;
using testing::FakeBehaviour;
using ::testing::HasSubstr;
using testing::Ran;
using testing::ReadFile;
using testing::Spec;
using ::testing::StartsWith;
using testing::WriteNpy;

class CliTrace : public Cli {
 protected:
  std::string Trace() const { return dir_.File("t.json"); }
  std::string Timeline() const { return dir_.File("t.svg"); }
  std::string Big() {
    const ArraySpec spec = Spec(DType::kF32, {2000, 500});
    WriteNpy(dir_.File("big.npy"), spec, testing::Floats(1'000'000, 1).data());
    return dir_.File("big.npy");
  }
  /// Names of the trace's spans.
  std::multiset<std::string> Spans() const {
    std::multiset<std::string> names;
    const auto file = nlohmann::json::parse(ReadFile(Trace()));
    for (const auto& event : file["traceEvents"])
      if (event["ph"] == "X") names.insert(event["name"].get<std::string>());
    return names;
  }
  void ExpectNotSent() {
    const auto log = server_.log();
    EXPECT_EQ(log.calls + log.streams, 0);
  }
};

TEST_F(CliTrace, BothFilesOfAUnaryCallAndTheAnswerAlone) {
  const Ran ran = Run({"--trace", Trace(), "rmse", A(), B(), "--timeline", Timeline()});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(std::stod(ran.out), std::sqrt(pair_.SumSquares() / 12));
  EXPECT_EQ(Spans(), (std::multiset<std::string>{"call", "exchange", "sink"}));
  const auto svg = tilewire::testing::XmlReader::Read(ReadFile(Timeline()));
  EXPECT_EQ(svg[1].text, "rmse f32 (3, 4), f32 (3, 4) -> f64 ()");
}

TEST_F(CliTrace, EveryOperationStreamed) {
  const std::string big = Big();
  size_t before = 0;
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"rmse", big, big},
           {"rmse", big, big, "--axis", "1", "--out", dir_.File("r.npy")},
           {"transpose", big, dir_.File("r.npy")},
           {"gaussian-pdf", big, dir_.File("r.npy"), "--mean", "0", "--stddev", "1"}}) {
    auto all = arguments;
    all.insert(all.end(), {"--trace", Trace(), "--timeline", Timeline()});
    const Ran ran = Run(all);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const auto spans = Spans();
    for (const char* name : {"call", "connect", "open", "result"}) EXPECT_EQ(spans.count(name), 1u) << name;
    const size_t chunks = server_.log().chunks.size();
    EXPECT_EQ(spans.count("write"), chunks - before);
    before = chunks;
    EXPECT_THAT(tilewire::testing::XmlReader::Read(ReadFile(Timeline()))[1].text, StartsWith(arguments[0]));
    std::filesystem::remove(Trace());
    std::filesystem::remove(Timeline());
  }
}

TEST_F(CliTrace, PathsThatCannotBeWrittenAreFoundBeforeTheCall) {
  for (const char* flag : {"--trace", "--timeline"})
    for (const std::string& path : {dir_.File("none/t"), std::string("/dev/null"), dir_.path()}) {
      const Ran ran = Run({"rmse", A(), B(), flag, path});
      EXPECT_EQ(ran.exit_code, 2) << flag << " " << path;
      EXPECT_THAT(ran.err, HasSubstr(path));
      EXPECT_EQ(ran.out, "");
    }
  const Ran ran =
      Run({"transpose", A(), dir_.File("r.npy"), "--trace", Trace(), "--timeline", dir_.File("none/t")});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(Trace()));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("r.npy")));
  ExpectNotSent();
}

TEST_F(CliTrace, OneFileCannotHoldTwoThings) {
  EXPECT_EQ(Run({"rmse", A(), B(), "--trace", Trace(), "--timeline", Trace()}).exit_code, 2);
  const Ran ran = Run({"transpose", A(), Trace(), "--trace", Trace()});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--trace and the result are the same file"));
  EXPECT_EQ(Run({"rmse", A(), B(), "--out", Timeline(), "--timeline", Timeline()}).exit_code, 2);
  ExpectNotSent();
}

TEST_F(CliTrace, FailedCallsLeaveNothing) {
  FakeBehaviour behaviour;
  behaviour.lie = FakeBehaviour::Lie::kMissingOutput;
  server_.Behave(behaviour);
  testing::WriteFile(Trace(), "old");
  const std::string big = Big();
  const size_t files = dir_.Count();
  EXPECT_EQ(
      Run({"transpose", big, dir_.File("r.npy"), "--trace", Trace(), "--timeline", Timeline()}).exit_code, 1);
  EXPECT_EQ(ReadFile(Trace()), "old");
  EXPECT_EQ(dir_.Count(), files);
}

TEST_F(CliTrace, OnlyOperationsHaveATrace) {
  for (const char* command : {"ping", "info", "selftest"})
    for (const char* flag : {"--trace", "--timeline"}) {
      const Ran ran = Run({command, flag, Trace()});
      EXPECT_EQ(ran.exit_code, 2) << command;
      EXPECT_THAT(ran.err, HasSubstr("allowed: rmse, transpose, gaussian-pdf"));
    }
  EXPECT_THAT(Run({"rmse", A(), B(), "--trace", ""}).err, HasSubstr("is empty"));
  ExpectNotSent();
}

TEST_F(CliTrace, JsonAndTimingTellCopies) {
  const Ran ran = Run({"rmse", A(), B(), "--json", "--timing"});
  // 2 × 48 bytes in, 8 out, which the server claims to have copied one and a half times.
  EXPECT_EQ(nlohmann::json::parse(ran.out)["timing"]["bytes_copied"], 108);
  EXPECT_THAT(ran.err, HasSubstr("copies per payload byte 1.04\n"));
}

}  // namespace
}  // namespace tilewire::client

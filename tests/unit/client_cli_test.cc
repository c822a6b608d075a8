// The program: outputs and files, run as users run it.
#include <csignal>
#include <thread>

#include "tests/unit/client_cli_testing.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using testing::Cli;
using testing::FakeBehaviour;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Program;
using testing::Ran;
using testing::ReadFile;
using testing::Spec;
using ::testing::StartsWith;
using testing::WriteNpy;
using tilewire::testing::Eventually;

TEST_F(Cli, RmsePrintsTheAnswerAlone) {
  const Ran ran = Run({"rmse", A(), B()});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(std::stod(ran.out), std::sqrt(pair_.SumSquares() / 12));
  EXPECT_EQ(ran.out.find('\n'), ran.out.size() - 1);
  EXPECT_THAT(ran.err, IsEmpty());  // no terminal, no --timing
}

TEST_F(Cli, RmseOfAxesPrintsOneValueALine) {
  const Ran ran = Run({"rmse", A(), B(), "--axis", "-1", "--output", "sum-squares"});
  EXPECT_EQ(ran.exit_code, 0);
  double total = 0;
  std::istringstream lines(ran.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) total += std::stod(line);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(total, pair_.SumSquares());
}

TEST_F(Cli, ValuesWithoutNumbersAreWords) {
  const float a[] = {NAN, INFINITY, 1};
  const float b[] = {0, 0, 0.5};
  WriteNpy(dir_.File("x.npy"), Spec(DType::kF32, {3, 1}), a);
  WriteNpy(dir_.File("y.npy"), Spec(DType::kF32, {3, 1}), b);
  EXPECT_EQ(Run({"rmse", dir_.File("x.npy"), dir_.File("y.npy"), "--axis", "1"}).out, "nan\ninf\n0.5\n");
  const Ran ran = Run({"--json", "rmse", dir_.File("x.npy"), dir_.File("y.npy"), "--axis", "1"});
  EXPECT_EQ(nlohmann::json::parse(ran.out)["values"], nlohmann::json({"nan", "inf", 0.5}));
}

TEST_F(Cli, JsonIsOneObjectWithTiming) {
  const Ran ran = Run({"rmse", A(), B(), "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["values"][0].get<double>(), std::sqrt(pair_.SumSquares() / 12));
  EXPECT_EQ(json["shape"], nlohmann::json::array());
  EXPECT_EQ(json["dtype"], "f64");
  EXPECT_EQ(json["numeric_version"], "rmse.1");
  EXPECT_EQ(json["timing"]["kernel_us"], 20);
  EXPECT_EQ(json["timing"]["other_us"], 12.5);
  EXPECT_EQ(json["timing"]["bottleneck_share"], 0.97);
  EXPECT_FALSE(json["timing"].contains("h2d_us"));
  EXPECT_EQ(json["timing"]["attempts"], 1);
}

TEST_F(Cli, TimingGoesToStderr) {
  const Ran ran = Run({"rmse", A(), B(), "--timing"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("kernel"));
  EXPECT_THAT(ran.err, HasSubstr("bottleneck, at 97% of plain copies"));
  EXPECT_THAT(ran.err, ::testing::ContainsRegex("other +0.01[23] ms"));
  EXPECT_THAT(ran.err, ::testing::Not(HasSubstr("h2d")));
}

TEST_F(Cli, StudyOptionsReachTheServer) {
  const Ran ran = Run({"rmse", A(), B(), "--block-bytes", "256KiB", "--lanes", "2", "--no-overlap"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(server_.log().block_bytes, 256U << 10);
  EXPECT_EQ(server_.log().lanes, 2U);
  EXPECT_TRUE(server_.log().sequential);
  ASSERT_EQ(Run({"rmse", A(), B()}).exit_code, 0);
  EXPECT_EQ(server_.log().block_bytes, 0U);
  EXPECT_FALSE(server_.log().sequential);
  EXPECT_EQ(Run({"rmse", A(), B(), "--lanes", "0"}).exit_code, 2);
  EXPECT_EQ(Run({"rmse", A(), B(), "--block-bytes", "many"}).exit_code, 2);
}

TEST_F(Cli, RmseWritesAFile) {
  const Ran ran = Run({"rmse", A(), B(), "--axis", "1", "--out", dir_.File("r.npy")});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_EQ(ArraySource::OpenNpy(dir_.File("r.npy")).value().spec(), Spec(DType::kF64, {3}));
}

TEST_F(Cli, TransposeWritesAFileAndBackAgain) {
  EXPECT_EQ(Run({"transpose", A(), dir_.File("t.npy")}).exit_code, 0);
  EXPECT_EQ(ArraySource::OpenNpy(dir_.File("t.npy")).value().spec(), Spec(DType::kF32, {4, 3}));
  const Ran ran = Run({"transpose", dir_.File("t.npy"), dir_.File("tt.npy"), "--axes", "-1,0", "--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["shape"], nlohmann::json({3, 4}));
  EXPECT_EQ(ReadFile(dir_.File("tt.npy")), ReadFile(A()));
}

TEST_F(Cli, EveryDTypeSurvivesTwoTransposes) {
  for (const auto& info : AllDTypes()) {
    const ArraySpec spec = Spec(info.dtype, {300, 211});
    WriteNpy(dir_.File("d.npy"), spec, testing::Pattern(static_cast<size_t>(spec.bytes())).data());
    const Ran there = Run({"transpose", dir_.File("d.npy"), dir_.File("t.npy")});
    EXPECT_EQ(there.exit_code, 0) << there.err;
    const Ran back = Run({"transpose", dir_.File("t.npy"), dir_.File("tt.npy")});
    EXPECT_EQ(back.exit_code, 0) << back.err;
    EXPECT_EQ(ReadFile(dir_.File("tt.npy")), ReadFile(dir_.File("d.npy"))) << info.name;
  }
}

TEST_F(Cli, ServerErrorsExitWith1AndTheirName) {
  WriteNpy(dir_.File("c.npy"), Spec(DType::kF32, {4, 3}), pair_.a.data());
  const Ran shapes = Run({"rmse", A(), dir_.File("c.npy")});
  EXPECT_EQ(shapes.exit_code, 1);
  EXPECT_THAT(shapes.err, StartsWith("error: INVALID_ARGUMENT: "));
  EXPECT_THAT(shapes.out, IsEmpty());
  EXPECT_EQ(Run({"transpose", A(), dir_.File("t.npy"), "--axes", "0,2"}).exit_code, 1);
  const Ran nobody = Run({"--server", "127.0.0.1:1", "ping"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, StartsWith("error: UNAVAILABLE: "));
}

TEST_F(Cli, AFailedCallLeavesNoFile) {
  WriteNpy(dir_.File("big.npy"), Spec(DType::kU8, {2048, 2048}), testing::Pattern(2048 * 2048).data());
  FakeBehaviour behaviour;
  behaviour.lie = FakeBehaviour::Lie::kMissingOutput;
  server_.Behave(behaviour);
  testing::WriteFile(dir_.File("t.npy"), "old");
  const size_t files = dir_.Count();
  const Ran ran = Run({"transpose", dir_.File("big.npy"), dir_.File("t.npy")});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, StartsWith("error: INTERNAL: "));
  EXPECT_EQ(ReadFile(dir_.File("t.npy")), "old");
  EXPECT_EQ(dir_.Count(), files);
}

TEST_F(Cli, SignalsEndTheCallCleanly) {
  FakeBehaviour behaviour;
  behaviour.silent = true;
  server_.Behave(behaviour);
  const size_t files = dir_.Count();
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    const testing::FakeLog before = server_.log();
    const auto begun = [](const testing::FakeLog& log) { return log.calls + log.streams; };
    Program program(TILEWIRE_CLI, {"transpose", A(), dir_.File("t.npy")}, server_.address());
    EXPECT_TRUE(Eventually([&] { return begun(server_.log()) > begun(before); }));
    program.Kill(signal);
    const Ran ran = program.Wait();
    EXPECT_EQ(ran.exit_code, code);
    EXPECT_THAT(ran.err, AnyOf("error: CANCELLED: interrupted\n",
                               "error: CANCELLED: interrupted; the peer does not answer\n"));
    EXPECT_EQ(dir_.Count(), files);
    EXPECT_TRUE(Eventually([&] { return server_.log().cancelled > before.cancelled; }));
    EXPECT_EQ(server_.log().cancelled, before.cancelled + 1);
  }
}

TEST_F(Cli, DeafPeersCannotKeepTheProgram) {
  WriteNpy(dir_.File("big.npy"), Spec(DType::kU8, {64 << 20}), testing::Pattern(64 << 20).data());
  testing::DeafPeer peer;
  const auto start = std::chrono::steady_clock::now();
  const Ran ran = Run(
      {"--server", peer.address(), "--timeout", "0.5", "rmse", dir_.File("big.npy"), dir_.File("big.npy")});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, StartsWith("error: DEADLINE_EXCEEDED: --timeout of 0.5 s passed"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 29s) << "not by the 30 s after which gRPC gives up";
}

TEST_F(Cli, TimeoutsEndTheCall) {
  FakeBehaviour behaviour;
  behaviour.silent = true;
  server_.Behave(behaviour);
  const Ran ran = Run({"rmse", A(), B(), "--timeout", "0.3"});
  EXPECT_EQ(ran.exit_code, 1);
  const std::string passed = "error: DEADLINE_EXCEEDED: --timeout of 0.3 s passed";
  EXPECT_THAT(ran.err, AnyOf(passed + "\n", passed + "; the peer takes no data\n"));
}

TEST_F(Cli, AFullStdoutIsAnError) {
  EXPECT_EQ(Program(TILEWIRE_CLI, {"rmse", A(), B()}, server_.address(), "/dev/full").Wait().exit_code, 1);
}

TEST_F(Cli, InspectsTheServer) {
  EXPECT_THAT(Run({"info"}).out, HasSubstr("cpu \"Fake CPU\", 8 GiB, 2 processors"));
  EXPECT_THAT(Run({"info"}).out, HasSubstr("50.2 GB/s in, 48.0 GB/s out"));
  EXPECT_EQ(nlohmann::json::parse(Run({"info", "--json"}).out)["devices"][0]["id"], "cpu");
  EXPECT_EQ(nlohmann::json::parse(Run({"ping", "-n", "3", "--json"}).out)["round_trip_us"].size(), 3u);
  EXPECT_THAT(Run({"ping", "-n", "1"}).out, HasSubstr(" ms"));
}

TEST_F(Cli, SelftestTellsRightServersFromWrongOnes) {
  const Ran right = Run({"selftest"});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("ok  rmse/f32/4097\n"));
  EXPECT_THAT(right.out, HasSubstr("ok  gaussian/f64/standard\n"));
  EXPECT_THAT(right.out, HasSubstr("cases have the right bits"));
  FakeBehaviour behaviour;
  behaviour.lie = FakeBehaviour::Lie::kWrongBits;
  server_.Behave(behaviour);
  const Ran wrong = Run({"selftest"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.out, HasSubstr("bits differ  rmse/f32/4097: rmse is "));
  EXPECT_THAT(wrong.out, HasSubstr("bits differ  transpose/f32/(64, 64) axes 1 0: bytes differ\n"));
  EXPECT_THAT(wrong.out,
              HasSubstr("bits differ  gaussian/f32/standard: element 0 is 000000003ecc422b, expected "));
}

TEST_F(Cli, TheExampleWorks) {
  const Ran ran = Program(TILEWIRE_CLIENT_EXAMPLE, {server_.address()}).Wait();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("rmse 0.5"));
  EXPECT_EQ(Program(TILEWIRE_CLIENT_EXAMPLE, {"127.0.0.1:1"}).Wait().exit_code, 1);
}

}  // namespace
}  // namespace tilewire::client

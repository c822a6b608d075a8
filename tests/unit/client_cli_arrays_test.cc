// The program: arrays that stay at the server.
#include <nlohmann/json.hpp>

#include "client/cpp/operations.h"
#include "tests/unit/client_cli_testing.h"

namespace tilewire::client {
namespace {

using nlohmann::json;
using testing::Cli;
using testing::FakeBehaviour;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Program;
using testing::Ran;
using testing::ReadFile;
using testing::Spec;
using ::testing::StartsWith;

class CliArrays : public Cli {
 protected:
  /// The id that a command printed alone on a line.
  std::string Id(const std::vector<std::string>& arguments) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out.find('\n'), ran.out.size() - 1) << ran.out;
    return ran.out.substr(0, ran.out.size() - 1);
  }
};

TEST_F(CliArrays, PutPrintsTheIdAndGetBringsTheFile) {
  const std::string id = Id({"put", A()});
  EXPECT_EQ(server_.log().arrays, 1) << "it stays when the program ends";
  const Ran got = Run({"get", id, dir_.File("a2.npy")});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_THAT(got.out, IsEmpty());
  EXPECT_EQ(ReadFile(dir_.File("a2.npy")), ReadFile(A()));
  const Ran again = Run({"get", "array:" + id, dir_.File("a3.npy"), "--json"});
  const json told = json::parse(again.out);
  EXPECT_EQ(told["out"], dir_.File("a3.npy"));
  EXPECT_EQ(told["shape"], json({3, 4}));
  EXPECT_EQ(told["dtype"], "f32");
  EXPECT_TRUE(told["timing"].contains("wall_us"));
  EXPECT_FALSE(told.contains("numeric_version"));
  EXPECT_EQ(ReadFile(dir_.File("a3.npy")), ReadFile(A()));
}

TEST_F(CliArrays, PutTellsHowItIsKept) {
  const Ran put = Run({"put", A(), "--evictable", "--seconds", "90.5", "--json"});
  ASSERT_EQ(put.exit_code, 0) << put.err;
  EXPECT_EQ(json::parse(put.out)["shape"], json({3, 4}));
  const json list = json::parse(Run({"ls", "--json"}).out);
  ASSERT_EQ(list["arrays"].size(), 1u);
  const json& array = list["arrays"][0];
  EXPECT_EQ(array["array"], json::parse(put.out)["array"]);
  EXPECT_EQ(array["evictable"], true);
  EXPECT_EQ(array["expires_seconds"], 90.5);
  EXPECT_EQ(array["device_bytes"], 55);
  EXPECT_EQ(list["quota_bytes"], 4000);
}

TEST_F(CliArrays, LsIsATable) {
  EXPECT_THAT(Run({"ls"}).out, HasSubstr("0 arrays, 1000 B of 3.91 KiB\n"));
  const std::string id = Id({"put", A()}), other = Id({"put", B(), "--evictable", "--seconds", "7200"});
  const Ran ls = Run({"ls"});
  EXPECT_EQ(ls.exit_code, 0);
  std::istringstream lines(ls.out);
  std::string header, first, second, total;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  std::getline(lines, total);
  EXPECT_THAT(header, StartsWith("ID "));
  EXPECT_THAT(first,
              StartsWith(id + "  f32    (3, 4)  cpu     55 B    1.5 s  60 min   0.5 s  2      to the end"));
  EXPECT_THAT(second, StartsWith(other + "  f32    (3, 4)  cpu     55 B    1.5 s  2.0 h "));
  EXPECT_THAT(second, HasSubstr("evictable"));
  EXPECT_EQ(header.find("EXPIRES"), first.find("60 min"));
  EXPECT_EQ(total, "2 arrays, 1000 B of 3.91 KiB");
}

TEST_F(CliArrays, RmDeletesEachAndNamesThoseThatAreNotThere) {
  const std::string id = Id({"put", A()}), other = Id({"put", B()}), third = Id({"put", B()});
  const Ran some = Run({"rm", id, "nowhere", "array:" + other});
  EXPECT_EQ(some.exit_code, 1);
  EXPECT_THAT(some.err, StartsWith("error: NOT_FOUND: array is nowhere; allowed: "));
  EXPECT_THAT(some.out, IsEmpty());
  EXPECT_EQ(server_.log().arrays, 1);
  const Ran last = Run({"rm", third, "--json"});
  EXPECT_EQ(last.exit_code, 0);
  EXPECT_EQ(json::parse(last.out)["deleted"], json({third}));
  EXPECT_EQ(server_.log().arrays, 0);
}

TEST_F(CliArrays, IdsStandWhereFileNamesDo) {
  const std::string a = "array:" + Id({"put", A()}), b = "array:" + Id({"put", B()});
  const std::string expected = Run({"rmse", A(), B(), "--axis", "1"}).out;
  for (const auto& [x, y] : {std::pair(a, B()), std::pair(A(), b), std::pair(a, b)}) {
    const Ran ran = Run({"rmse", x, y, "--axis", "1"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out, expected);
    ASSERT_EQ(Run({"rmse", x, y, "--axis", "1", "--out", dir_.File("r.npy")}).exit_code, 0);
    EXPECT_EQ(ArraySource::OpenNpy(dir_.File("r.npy")).value().spec(), Spec(DType::kF64, {3}));
  }
  for (const std::string& in : {A(), a}) {
    ASSERT_EQ(Run({"transpose", in, dir_.File("t.npy")}).exit_code, 0);
    EXPECT_EQ(ArraySource::OpenNpy(dir_.File("t.npy")).value().spec(), Spec(DType::kF32, {4, 3}));
  }
  EXPECT_EQ(Run({"gaussian-pdf", a, dir_.File("g.npy"), "--mean", "0", "--stddev", "1"}).exit_code, 0);
}

TEST_F(CliArrays, StoreKeepsResults) {
  const std::string a = "array:" + Id({"put", A()});
  const std::string turned = Id({"transpose", a, "--store", "--seconds", "7"});
  const Ran json_ran = Run({"gaussian-pdf", a, "--mean", "0", "--stddev", "1", "--store", "--json"});
  EXPECT_EQ(json::parse(json_ran.out)["numeric_version"], "gaussian.1");
  EXPECT_EQ(json::parse(json_ran.out)["dtype"], "f32");
  const std::string values = Id({"rmse", a, B(), "--axis", "0", "--store", "--evictable"});
  EXPECT_EQ(server_.log().arrays, 4);
  ASSERT_EQ(Run({"transpose", A(), dir_.File("t.npy")}).exit_code, 0);
  ASSERT_EQ(Run({"get", turned, dir_.File("t2.npy")}).exit_code, 0);
  EXPECT_EQ(ReadFile(dir_.File("t2.npy")), ReadFile(dir_.File("t.npy")));
  ASSERT_EQ(Run({"rmse", A(), B(), "--axis", "0", "--out", dir_.File("r.npy")}).exit_code, 0);
  ASSERT_EQ(Run({"get", values, dir_.File("r2.npy")}).exit_code, 0);
  EXPECT_EQ(ReadFile(dir_.File("r2.npy")), ReadFile(dir_.File("r.npy")));
}

TEST_F(CliArrays, AnIdThatCannotBePrintedLeavesNoArray) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"put", A()}, {"transpose", A(), "--store"}})
    EXPECT_EQ(Program(TILEWIRE_CLI, arguments, server_.address(), "/dev/full").Wait().exit_code, 1);
  EXPECT_EQ(server_.log().arrays, 0);
}

TEST_F(CliArrays, TracesTellOfThemToo) {
  const std::string trace = dir_.File("t.json"), timeline = dir_.File("t.svg");
  const auto expect = [&](std::vector<std::string> arguments, const std::string& title) {
    arguments.insert(arguments.end(), {"--trace", trace, "--timeline", timeline});
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(json::parse(ReadFile(trace))["otherData"]["title"], title);
    EXPECT_THAT(ReadFile(timeline), HasSubstr("<svg"));
    return ran.out.substr(0, ran.out.find('\n'));
  };
  const std::string id = expect({"put", A()}, "put f32 (3, 4)");
  expect({"get", id, dir_.File("o.npy")}, "get f32 (3, 4)");
  expect({"transpose", "array:" + id, "--store"}, "transpose array:" + id + " -> f32 (4, 3)");
}

TEST_F(CliArrays, WhatIsWrongExitsWith2BeforeAnythingIsSent) {
  const std::string out = dir_.File("o.npy");
  for (const auto& [arguments, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"put"}, "IN is required"},
           {{"put", dir_.File("none.npy")}, "none.npy: No such file"},
           {{"put", A(), "--seconds", "0"}, "--seconds: '0' is out of range"},
           {{"put", A(), "--store"}, "'--store' is no option"},
           {{"get", "x"}, "OUT is required"},
           {{"get", "array:", out}, "array id is ''; allowed: "},
           {{"rm"}, "ID is required"},
           {{"rm", "a b"}, "array id is 'a b'"},
           {{"ls", "--trace", out}, "ls is not; allowed: " + CommandNames() + ", put, get"},
           {{"rm", "x", "--timeline", out}, "rm is not"},
           {{"rmse", A(), "array:"}, "array id is ''"},
           {{"rmse", A(), B(), "--evictable"}, "--evictable requires --store"},
           {{"rmse", A(), B(), "--store", "--out", out}, "--out excludes --store"},
           {{"transpose", A()}, "OUT is required, or --store\n"},
           {{"transpose", A(), out, "--store"}, "and --store; allowed: one of them"},
           {{"gaussian-pdf", A(), "--mean", "0", "--stddev", "1", "--seconds", "1"},
            "--seconds requires --store"}}) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_THAT(ran.err, HasSubstr(says));
  }
  EXPECT_EQ(server_.log().calls + server_.log().streams, 0);
  EXPECT_EQ(Run({"get", Id({"put", A()}), "/nowhere/o.npy"}).exit_code, 2);
}

TEST_F(CliArrays, WhatIsNotThereExitsWith1) {
  const size_t files = dir_.Count();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"get", "nowhere", dir_.File("o.npy")},
        {"rm", "nowhere"},
        {"rmse", A(), "array:nowhere"},
        {"transpose", "array:nowhere", dir_.File("o.npy")},
        {"transpose", "array:nowhere", "--store"}}) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 1) << ::testing::PrintToString(arguments);
    EXPECT_THAT(ran.err, StartsWith("error: NOT_FOUND: "));
    EXPECT_THAT(ran.err, HasSubstr("nowhere"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_EQ(dir_.Count(), files);
}

TEST_F(CliArrays, AFailedGetLeavesTheFileAsItWas) {
  const ArraySpec spec = Spec(DType::kU8, {1000, 1000});
  testing::WriteNpy(dir_.File("big.npy"), spec, testing::Pattern(1'000'000).data());
  const std::string id = Id({"put", dir_.File("big.npy")});
  testing::WriteFile(dir_.File("o.npy"), "old");
  FakeBehaviour behaviour;
  behaviour.lie = FakeBehaviour::Lie::kMissingOutput;
  server_.Behave(behaviour);
  const Ran ran = Run({"get", id, dir_.File("o.npy")});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, StartsWith("error: INTERNAL: "));
  EXPECT_EQ(ReadFile(dir_.File("o.npy")), "old");
}

TEST_F(CliArrays, InfoTellsWhatMayBeStored) {
  EXPECT_THAT(Run({"info"}).out, HasSubstr("resident arrays   "));
  EXPECT_TRUE(json::parse(Run({"info", "--json"}).out)["limits"].contains("store_bytes_per_identity"));
}

}  // namespace
}  // namespace tilewire::client

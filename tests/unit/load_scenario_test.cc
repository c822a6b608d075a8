// Scenario files: what they may say, and what is said about those that do not.
#include "client/load/scenario.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/json_lines.h"

namespace tilewire::load {
namespace {

using ::testing::HasSubstr;

/// A scenario whose line 3 is `line`, and whose only operation is `operation` on line 5.
std::string File(const std::string& line = R"("seed": 4,)",
                 const std::string& operation = R"("operation": "rmse", "shape": [64])",
                 const std::string& mode = R"({"type": "closed"})") {
  return "{\n \"mode\": " + mode + ",\n " + line + "\n \"operations\": [\n  {" + operation + "}\n ]\n}\n";
}

std::string ErrorOf(const std::string& text) {
  const auto scenario = ParseScenario(text, "f.json");
  EXPECT_FALSE(scenario) << text;
  return scenario ? "" : std::string(scenario.error().message());
}

TEST(LoadScenario, WithoutAModeOneCallerCallsInAClosedLoop) {
  const std::string operations = R"("operations": [{"operation": "rmse", "shape": [64]}]})";
  const struct {
    std::string text;
    uint32_t callers;
  } cases[] = {{"{" + operations, 1},
               {R"({"mode": {}, )" + operations, 1},
               {R"({"mode": {"callers": 3}, )" + operations, 3}};
  for (const auto& [text, callers] : cases) {
    const auto scenario = ParseScenario(text, "f.json");
    ASSERT_TRUE(scenario) << scenario.error().ToString();
    EXPECT_EQ(scenario->mode.type, ModeType::kClosed) << text;
    EXPECT_EQ(scenario->mode.callers, callers) << text;
    EXPECT_EQ(scenario->channels, callers) << text;
    EXPECT_FALSE(OptionsOf(*scenario).rate) << "a closed loop";
    EXPECT_EQ(ToJson(*scenario)["mode"], (nlohmann::ordered_json{{"type", "closed"}, {"callers", callers}}));
  }
}

TEST(LoadScenario, WordsOfAListAreEachOnce) {
  const auto compare = [](const std::string& metrics) {
    return R"("operation": "compare", "shape": [64], "metrics": )" + metrics;
  };
  const auto scenario = ParseScenario(File("", compare(R"(["max_abs", "rmse"])")), "f.json");
  ASSERT_TRUE(scenario) << scenario.error().ToString();
  EXPECT_THAT(scenario->operations[0].operation.attributes.integers("metrics"), ::testing::ElementsAre(7, 0));
  for (const char* const wrong : {R"("rmse")", R"(["rmse", "rmse"])", R"(["large"])", "[0]"})
    EXPECT_THAT(ErrorOf(File("", compare(wrong))),
                HasSubstr("a list of these, each once: rmse, mse, sum_squares"))
        << wrong;
}

TEST(LoadScenario, DefaultsAreFilledIn) {
  const auto scenario = ParseScenario(File(), "f.json");
  ASSERT_TRUE(scenario) << scenario.error().ToString();
  EXPECT_EQ(scenario->name, "f.json");
  EXPECT_EQ(scenario->seed, 4u);
  EXPECT_EQ(scenario->mode.callers, 1u);
  EXPECT_EQ(scenario->seconds, 10.0);
  ASSERT_EQ(scenario->operations.size(), 1u);
  const OperationSpec& spec = scenario->operations[0];
  EXPECT_EQ(spec.name, "rmse f32 (64)");
  EXPECT_EQ(spec.operand.dtype, DType::kF32);
  EXPECT_EQ(spec.access, Access::kStream);
  EXPECT_EQ(spec.connections, 1u);
  EXPECT_EQ(spec.bytes(), 2 * 256 + 8u);
}

TEST(LoadScenario, ResidentOperandsAreCountedButNotSent) {
  const auto parse = [](const std::string& operation) {
    const auto scenario = ParseScenario(File("", operation), "f.json");
    EXPECT_TRUE(scenario) << scenario.error().ToString();
    return scenario ? scenario->operations[0] : OperationSpec();
  };
  const auto reference = parse(R"("operation": "rmse", "shape": [64], "access": "resident")");
  EXPECT_EQ(reference.bytes(), 2 * 256 + 8u);
  EXPECT_EQ(reference.resident_bytes(), 256u);
  EXPECT_TRUE(!reference.stays(0) && reference.stays(1));
  const auto both = parse(R"("operation": "rmse", "shape": [64], "access": "resident", "resident": "all")");
  EXPECT_EQ(both.resident_bytes(), 512u);
  const auto one = parse(R"("operation": "gaussian-pdf", "shape": [64], "access": "resident")");
  EXPECT_EQ(one.resident_bytes(), 256u);
  EXPECT_EQ(parse(R"("operation": "rmse", "shape": [64])").resident_bytes(), 0u);
  EXPECT_EQ(parse(R"("operation": "rmse", "shape": [64])").region_bytes(), 0u);
  const auto region = parse(R"("operation": "rmse", "shape": [64], "access": "region")");
  EXPECT_EQ(region.region_bytes(), 2 * 256 + 8u);
  EXPECT_EQ(region.resident_bytes(), 0u);
}

TEST(LoadScenario, WhatIsUnderstoodReadsBackTheSame) {
  for (const std::string& text :
       {File(), File(R"("requests": 7, "inputs": 2,)"), File(R"("stable": {"within": 0.1},)"),
        File(R"("seed": 9,)", R"("operation": "gaussian-pdf", "dtype": "f64", "shape": [3, 4], "stddev": 0.1,
               "access": "striped", "connections": 3)",
             R"({"type": "open", "arrivals": "constant", "rate": 12.5, "callers": 9})"),
        File(R"("seed": 9,)", R"("operation": "transpose", "dtype": "u8", "shape": [3, 4], "axes": [1, 0],
               "access": "unary", "weight": 2.5)",
             R"({"type": "ramp", "bound_us": 2000, "percentile": 99.9, "start_rate": 5})"),
        File(R"("seed": 9,)", R"("operation": "rmse", "shape": [2, 3], "axes": [-1], "output": "mse")"),
        File("", R"("operation": "rmse", "shape": [2, 3], "access": "resident", "connections": 3)"),
        File("", R"("operation": "transpose", "shape": [2, 3], "access": "resident")"),
        File("", R"("operation": "transpose", "shape": [2, 3], "access": "region")")}) {
    const auto scenario = ParseScenario(text, "f.json");
    ASSERT_TRUE(scenario) << scenario.error().ToString();
    const std::string once = ToJson(*scenario).dump();
    const auto again = ParseScenario(once, "g.json");
    ASSERT_TRUE(again) << again.error().ToString() << once;
    EXPECT_EQ(ToJson(*again).dump(), once);
  }
}

TEST(LoadScenario, ReadyMadeOnesAreRight) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TILEWIRE_LOAD_SCENARIOS)) {
    if (entry.path().extension() != ".json") continue;
    const auto scenario = LoadScenario(entry.path().string());
    EXPECT_TRUE(scenario) << scenario.error().ToString();
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(LoadScenario, EveryComplaintNamesLineFieldValueAndAllowed) {
  const struct {
    std::string text, line, field, value, allowed;
  } cases[] = {
      {File(R"("sed": 4,)"), "3", "sed", "no field", "seed"},
      {File(R"("seed": -1,)"), "3", "seed", "-1", "0 to"},
      {File(R"("seed": "x",)"), "3", "seed", "\"x\"", "whole number"},
      {File(R"("seconds": 0,)"), "3", "seconds", "0", "0.01"},
      {File(R"("seconds": true,)"), "3", "seconds", "true", "number"},
      {File(R"("seconds": 1, "requests": 2,)"), "3", "requests", "2", "one of seconds"},
      {File(R"("stable": {"within": 7},)"), "3", "stable.within", "7", "1e-04 to 1"},
      {File(R"("stable": 3,)"), "3", "stable", "3", "an object"},
      {File(R"("inputs": 0,)"), "3", "inputs", "0", "1 to 64"},
      {File(R"("inputs": 1.5,)"), "3", "inputs", "1.5", "whole number"},
      {File(R"("seed": 1, "seed": 2,)"), "3", "seed", "twice", "once"},
      {File(R"("name": 5,)"), "3", "name", "5", "text"},
      {File("", "", R"("open")"), "2", "mode", "\"open\"", "an object"},
      {File("", "", R"({"type": "opne"})"), "2", "mode.type", "opne", "closed, open, ramp"},
      {File("", "", R"({"type": "open"})"), "2", "mode.rate", "absent", "required"},
      {File("", "", R"({"type": "open", "rate": 0})"), "2", "mode.rate", "0", "0.001"},
      {File("", "", R"({"type": "open", "rate": 1, "arrivals": "now"})"), "2", "mode.arrivals", "now",
       "poisson"},
      {File("", "", R"({"type": "closed", "rate": 1})"), "2", "mode.rate", "no field", "callers"},
      {File("", "", R"({"rate": 1})"), "2", "mode.rate", "no field", "callers, type"},
      {File("", "", R"({"type": "closed", "callers": 0})"), "2", "mode.callers", "0", "1 to 4096"},
      {File("", "", R"({"type": "ramp"})"), "2", "mode.bound_us", "absent", "required"},
      {File(R"("requests": 5,)", R"("operation": "rmse", "shape": [8])",
            R"({"type": "ramp", "bound_us": 9})"),
       "3", "requests", "5", "seconds (of each step)"},
      {File("", R"("operation": "fft", "shape": [8])"), "5", "operations[0].operation", "fft",
       "rmse, transpose"},
      {File("", R"("operation": "rmse")"), "5", "operations[0].shape", "absent", "required"},
      {File("", R"("operation": "rmse", "shape": [0])"), "5", "operations[0].shape", "[0]", "1"},
      {File("", R"("operation": "rmse", "shape": "8")"), "5", "operations[0].shape", "\"8\"", "[64, 128]"},
      {File("", R"("operation": "rmse", "shape": [9223372036854775807, 9])"), "5", "operations[0].shape",
       "9223372036854775807", ""},
      {File("", R"("operation": "rmse", "shape": [8], "dtype": "f31")"), "5", "operations[0].dtype", "f31",
       "bool, i8"},
      {File("", R"("operation": "rmse", "shape": [8], "dtype": "c64")"), "5", "operations[0].dtype", "c64",
       "any but bool"},
      {File("", R"("operation": "gaussian-pdf", "shape": [8], "dtype": "i8")"), "5", "operations[0].dtype",
       "i8", "f32 or f64"},
      {File("", R"("operation": "gaussian-pdf", "shape": [8], "stddev": 0)"), "5", "operations[0].stddev",
       "0", "1e-"},
      {File("", R"("operation": "gaussian-pdf", "shape": [8], "axes": [0])"), "5", "operations[0].axes",
       "no field", "mean"},
      {File("", R"("operation": "rmse", "shape": [8], "axes": [1])"), "5", "operations[0].axes", "[1]", ""},
      {File("", R"("operation": "rmse", "shape": [8], "axes": [99])"), "5", "operations[0].axes", "[99]",
       "axes"},
      {File("", R"("operation": "transpose", "shape": [8, 8], "axes": [1])"), "5", "operations[0].axes",
       "[1]", "permutation"},
      {File("", R"("operation": "rmse", "shape": [8], "output": "max")"), "5", "operations[0].output", "max",
       "mse"},
      {File("", R"("operation": "rmse", "shape": [8], "access": "resident", "resident": "first")"), "5",
       "operations[0].resident", "first", "reference, all"},
      {File("",
            R"("operation": "transpose", "shape": [8, 8], "access": "resident", "resident": "reference")"),
       "5", "operations[0].resident", "reference", "all"},
      {File("", R"("operation": "rmse", "shape": [8], "access": "stream", "resident": "all")"), "5",
       "operations[0].resident", "no field", "access"},
      {File("", R"("operation": "rmse", "shape": [8], "access": "resident", "connections": 65)"), "5",
       "operations[0].connections", "65", "64"},
      {File("", R"("operation": "rmse", "shape": [8], "access": "region", "connections": 2)"), "5",
       "operations[0].connections", "2", "1"},
      {File("", R"("operation": "rmse", "shape": [8], "access": "shm")"), "5", "operations[0].access", "shm",
       "resident, region"},
      {File("", R"("operation": "rmse", "shape": [8], "access": "striped")"), "5",
       "operations[0].connections", "absent", "required"},
      {File("", R"("operation": "rmse", "shape": [8], "connections": 2)"), "5", "operations[0].connections",
       "2", "1"},
      {File("", R"("operation": "rmse", "shape": [1048576], "access": "unary")"), "5", "operations[0].shape",
       "[1048576]", "4193280"},
      {File("", R"("operation": "rmse", "shape": [8], "weight": 0)"), "5", "operations[0].weight", "0",
       "1e-06"},
      {File("", R"("operation": "rmse", "shape": [8]}, {"operation": "rmse", "shape": [8])"), "5",
       "operations[1].name", "rmse f32 (8)", "a name of its own"},
  };
  for (const auto& test : cases) {
    const std::string error = ErrorOf(test.text);
    EXPECT_THAT(error, HasSubstr("f.json:" + test.line + ": " + test.field + " is ")) << test.text;
    EXPECT_THAT(error, HasSubstr(test.value)) << test.text;
    EXPECT_THAT(error, HasSubstr("; allowed: ")) << test.text;
    EXPECT_THAT(error.substr(error.find("; allowed: ") + 1), HasSubstr(test.allowed)) << test.text;
  }
}

TEST(LoadScenario, WhatIsNoScenarioAtAll) {
  EXPECT_THAT(ErrorOf("{\n\n  x\n}"), HasSubstr("f.json:3: the file is no JSON"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("f.json:1: the file is no JSON"));
  EXPECT_THAT(ErrorOf("[1, 2]"), HasSubstr("f.json:1: the file is [1,2]; allowed: an object"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("f.json:1: operations is absent"));
  EXPECT_THAT(ErrorOf(R"({"mode": {"type": "closed"}, "operations": []})"), HasSubstr("operations is []"));
  EXPECT_THAT(ErrorOf(R"({"mode": {"type": "closed"}, "operations": [3]})"), HasSubstr("operations[0] is 3"));
  const auto missing = LoadScenario("/no/such/file.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(std::string(missing.error().message()), HasSubstr("/no/such/file.json"));
}

TEST(LoadScenario, LinesOfNestedValues) {
  const JsonLines lines("{\"a\": [1,\n 2, {\"b\\\"c\":\n 3}],\n\"d\": {}\n}");
  EXPECT_EQ(lines.LineOf("a"), 1);
  EXPECT_EQ(lines.LineOf("a[1]"), 2);
  EXPECT_EQ(lines.LineOf("a[2].b\\\"c"), 3);
  EXPECT_EQ(lines.LineOf("a[2].none"), 2) << "the nearest value around it";
  EXPECT_EQ(lines.LineOf("d"), 4);
  EXPECT_EQ(lines.LineOf("none"), 1);
  EXPECT_FALSE(lines.repeated());
  EXPECT_EQ(JsonLines(R"({"a": {"b": 1, "b": 2}})").repeated(), "a.b");
  // Anything at all may be given to it, as long as it ends.
  for (const char* text : {"", "{", "[", "{\"", "{\"a\"", "[1,,2", "[}", "[{]", "}", "{1: 2}", "\"\\"})
    JsonLines{text};
}

}  // namespace
}  // namespace tilewire::load

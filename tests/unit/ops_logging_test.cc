// Log lines: their form, and that no byte of a client's breaks one.
#include "server/ops/logging.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/ops/access_log.h"

namespace tilewire::ops {
namespace {

using Json = nlohmann::json;

spdlog::log_clock::time_point At(int64_t ms) {
  return spdlog::log_clock::time_point(std::chrono::milliseconds(ms));
}

std::string Timestamp(int64_t ms) {
  return std::string(ops::Timestamp(At(ms)));
}

std::string TextLine(int64_t ms, spdlog::level::level_enum level, std::string_view msg,
                     std::vector<Field> fields) {
  LineText line;
  FormatTextLine(At(ms), level, msg, fields, &line);
  return std::string(line.view());
}

std::string Text(std::string_view msg, std::vector<Field> fields) {
  return TextLine(1767323045678, spdlog::level::info, msg, std::move(fields));
}

std::string JsonText(std::string_view msg, std::vector<Field> fields) {
  LineText line;
  FormatJsonLine(At(1767323045678), spdlog::level::warn, msg, fields, &line);
  return std::string(line.view());
}

Json Parsed(std::string_view msg, std::vector<Field> fields) {
  return Json::parse(JsonText(msg, std::move(fields)));
}

/// All 256 bytes.
std::string EveryByte() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TextLine, IsReadable) {
  EXPECT_EQ(
      Text("call",
           {{"method", "Kernels.Rmse"}, {"blocks", 3u}, {"wall_us", 812.5}, {"ok", true}, {"peer", "a b"}}),
      "2026-01-02T03:04:05.678Z info  call method=Kernels.Rmse blocks=3 wall_us=812.5 ok=true peer=\"a b\"");
  EXPECT_EQ(TextLine(0, spdlog::level::err, "x", {}), "1970-01-01T00:00:00.000Z error x");
}

TEST(TextLine, EscapesWhatWouldBreakIt) {
  EXPECT_EQ(Text("a\nb", {{"empty", ""},
                          {"quoted", "say \"hi\"\\"},
                          {"line", "x\ny\x1b[31m"},
                          {"utf8", "\u00e9"},
                          {"eq", "k=v"}}),
            "2026-01-02T03:04:05.678Z info  a\\x0ab empty=\"\" quoted=\"say \\\"hi\\\"\\\\\" "
            "line=\"x\\x0ay\\x1b[31m\" "
            "utf8=\"\\xc3\\xa9\" eq=\"k=v\"");
  for (char c : Text(EveryByte(), {{"bytes", EveryByte()}})) {
    ASSERT_GE(c, 0x20);
    ASSERT_LT(c, 0x7f);
  }
}

TEST(TextLine, NumbersHaveTenDigits) {
  std::vector<double> numbers{0,         -0.0,    0.5,     812.437, 1234567890,  12345678901, 0.12345678949,
                              1e-4,      9.99e-5, 1e-300,  1e21,    1e300,       99999.9,     -3.25,
                              0.1 + 0.2, 1.0 / 3, 2.0 / 3, 1e10,    9999999999.5};
  uint64_t seed = 1;
  for (int i = 0; i < 10'000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto scaled = static_cast<double>(seed >> 40);
    numbers.insert(numbers.end(), {scaled / 1e3, scaled / 7, -scaled * 1e7, scaled * 1e-12});
  }
  for (const double number : numbers) {
    std::array<char, 64> expected{};
    std::snprintf(expected.data(), expected.size(), "%.10g", number);
    const std::string line = Text("x", {{"n", number}});
    EXPECT_EQ(line.substr(line.rfind('=') + 1), expected.data());
  }
}

TEST(TextLine, EachHasItsOwnTime) {
  for (const int64_t ms : {1767323045678, 1767323045009, 1767323046000, 1767323045999, int64_t{-1}})
    EXPECT_EQ(Timestamp(ms).substr(20), (ms < 0 ? "999Z" : std::to_string(ms).substr(10) + "Z"));
  EXPECT_EQ(Timestamp(1767323045678), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(Timestamp(1767323046000), "2026-01-02T03:04:06.000Z");
  EXPECT_EQ(Timestamp(-1), "1969-12-31T23:59:59.999Z");
}

TEST(JsonLine, NumbersAreReadBackAsTheyWere) {
  for (const double number : {0.0,
                              -0.0,
                              3.0,
                              0.1 + 0.2,
                              1e21,
                              5e-324,
                              1.7976931348623157e308,
                              -812.437,
                              0.001,
                              812.437,
                              812.4375,
                              999999.999,
                              1e5,
                              1e6,
                              1000000.001,
                              2e6,
                              1e15,
                              999999999999999.9,
                              1.2345678901234567e-4,
                              9.8765432109876543e-5,
                              -1.1111111111111112e14}) {
    const Json read = Parsed("x", {{"n", number}})["n"];
    EXPECT_TRUE(read.is_number_float()) << number;
    EXPECT_EQ(read.get<double>(), number);
  }
  EXPECT_TRUE(Parsed("x", {{"n", -INFINITY}})["n"].is_null());
  const auto text = [](double number) { return JsonText("x", {{"n", number}}); };
  EXPECT_NE(text(1e5).find("\"n\":100000.0}"), std::string::npos) << text(1e5);
  EXPECT_NE(text(2e6).find("\"n\":2000000.0}"), std::string::npos) << text(2e6);
  EXPECT_NE(text(1e21).find("\"n\":1e+21}"), std::string::npos) << text(1e21);
  EXPECT_NE(text(812.43).find("\"n\":812.43}"), std::string::npos) << text(812.43);
}

TEST(JsonLine, HasTimeLevelMessageAndTypedFields) {
  const Json line = Parsed("call", {{"method", "Kernels.Rmse"},
                                    {"bytes", int64_t{1} << 60},
                                    {"wall_us", 812.5},
                                    {"ok", false},
                                    {"none", std::nan("")}});
  EXPECT_EQ(line["ts"], "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(line["level"], "warn");
  EXPECT_EQ(line["msg"], "call");
  EXPECT_EQ(line["method"], "Kernels.Rmse");
  EXPECT_EQ(line["bytes"].get<int64_t>(), int64_t{1} << 60);
  EXPECT_EQ(line["wall_us"], 812.5);
  EXPECT_EQ(line["ok"], false);
  EXPECT_TRUE(line["none"].is_null());
}

TEST(JsonLine, StaysValidWhateverBytesCome) {
  const std::string line = JsonText(EveryByte(), {{"id", EveryByte()}});
  for (char c : line) ASSERT_TRUE(c >= 0x20 && c < 0x7f);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["id"].get<std::string>().substr(0, 128), EveryByte().substr(0, 128));
  EXPECT_EQ(Parsed("x", {{"a", "line\nnext \"q\" \xc3\xa9"}})["a"], "line\nnext \"q\" \xc3\xa9");
}

TEST(Logging, PrintsLinesFromTheLevelUpward) {
  ::testing::internal::CaptureStderr();
  InitLogging("json", "warn");
  LogEvent(spdlog::level::info, "quiet");
  LogEvent(spdlog::level::warn, "loud", {{"n", 7}});
  spdlog::error("plain {}", 1);
  FlushLog();
  const auto lines = Lines(::testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(Json::parse(lines[0])["n"], 7);
  EXPECT_EQ(Json::parse(lines[1])["msg"], "plain 1");
  EXPECT_EQ(Json::parse(lines[1])["level"], "error");
  EXPECT_EQ(Json::parse(lines[1]).size(), 3u) << "fields of an event do not leak into the next line";
}

TEST(Logging, TextAndBracesPassUnchanged) {
  ::testing::internal::CaptureStderr();
  InitLogging("text", "info");
  LogEvent(spdlog::level::info, "{} {0} %s", {{"a", "{}"}});
  FlushLog();
  const auto lines = Lines(::testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].ends_with("Z info  {} {0} %s a={}")) << lines[0];
}

TEST(Logging, ThreadsDoNotMixLines) {
  ::testing::internal::CaptureStderr();
  InitLogging("json", "info");
  constexpr int kThreads = 4, kEvents = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kEvents; ++i)
        LogEvent(spdlog::level::info, "m" + std::to_string(t), {{"t", t}, {"i", i}});
    });
  }
  for (auto& thread : threads) thread.join();
  FlushLog();
  const auto lines = Lines(::testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), static_cast<size_t>(kThreads * kEvents));
  for (const auto& line : lines) {
    const Json json = Json::parse(line);
    ASSERT_EQ(json["msg"], "m" + std::to_string(json["t"].get<int>()));
  }
}

TEST(AccessLog, OneLineACallWithWhatWasObserved) {
  ::testing::internal::CaptureStderr();
  InitLogging("json", "info");
  rpc::CallRecord record{.method = "Kernels.Execute",
                         .operation = "rmse",
                         .request_id = "r\n1",
                         .peer = "ipv4:1.2.3.4:5",
                         .identity = "anonymous",
                         .job = "j-1",
                         .bytes_in = 100,
                         .bytes_out = 8};
  record.status = Busy("queue full", 50);
  record.timing.wall_us = 12.5;
  record.timing.overlap = 1.23456;
  record.timing.window_share = 0.0004;
  record.timing.stage_us[static_cast<size_t>(Stage::kQueue)] = 3;
  record.timing.stage_us[static_cast<size_t>(Stage::kOther)] = 9.5;
  LogCall(record);
  FlushLog();
  const auto lines = Lines(::testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), 1u);
  const Json line = Json::parse(lines[0]);
  EXPECT_EQ(line["msg"], "call");
  EXPECT_EQ(line["level"], "warn");
  EXPECT_EQ(line["method"], "Kernels.Execute");
  EXPECT_EQ(line["operation"], "rmse");
  EXPECT_EQ(line["status"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(line["reason"], "BUSY");
  EXPECT_EQ(line["message"], "queue full");
  EXPECT_EQ(line["request_id"], "r\n1");
  EXPECT_EQ(line["peer"], "ipv4:1.2.3.4:5");
  EXPECT_EQ(line["identity"], "anonymous");
  EXPECT_EQ(line["job"], "j-1");
  EXPECT_EQ(line["bytes_in"], 100);
  EXPECT_EQ(line["bytes_out"], 8);
  EXPECT_EQ(line["wall_us"], 12.5);
  EXPECT_EQ(line["overlap"], 1.235);
  EXPECT_EQ(line["window_share"], 0.0);
  EXPECT_EQ(line["queue_us"], 3.0);
  EXPECT_EQ(line["other_us"], 9.5);
  EXPECT_FALSE(line.contains("h2d_us"));
  EXPECT_FALSE(line.contains("traceparent"));
}

TEST(AccessLog, WarnsOnlyOfTheServersFailures) {
  auto level = [](Code code, const char* reason) { return CallLevel(Status(code, reason, "m")); };
  EXPECT_EQ(CallLevel(Status()), spdlog::level::info);
  EXPECT_EQ(level(Code::kInvalidArgument, "BAD_VALUE"), spdlog::level::info);
  EXPECT_EQ(level(Code::kResourceExhausted, "LIMIT"), spdlog::level::info);
  EXPECT_EQ(level(Code::kResourceExhausted, "BUSY"), spdlog::level::warn);
  EXPECT_EQ(level(Code::kDeadlineExceeded, "IDLE"), spdlog::level::info);
  EXPECT_EQ(level(Code::kDeadlineExceeded, "DEADLINE"), spdlog::level::warn);
  EXPECT_EQ(level(Code::kCancelled, "CANCELLED"), spdlog::level::info);
  EXPECT_EQ(level(Code::kInternal, "INTERNAL_ERROR"), spdlog::level::warn);
  EXPECT_EQ(level(Code::kUnavailable, "DRAINING"), spdlog::level::warn);
}

}  // namespace
}  // namespace tilewire::ops

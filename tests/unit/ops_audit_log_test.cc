#include "server/ops/audit_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "server/ops/logging.h"
#include "server/ops/metrics.h"
#include "tests/unit/waiting.h"

namespace tilewire::ops {
namespace {

using Json = nlohmann::json;

class AuditLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tilewire-audit-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "audit.jsonl"; }
  std::vector<Json> Read() const {
    std::ifstream in(path());
    std::vector<Json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  static rpc::CallRecord Call(const Status& status) {
    rpc::CallRecord record{.method = "Kernels.Rmse",
                           .operation = "rmse",
                           .request_id = "r-1",
                           .peer = "ipv4:1.2.3.4:5",
                           .identity = "token:ann",
                           .job = "j-secret",
                           .caller = "token:ann",
                           .bytes_in = 16,
                           .bytes_out = 8};
    record.status = status;
    return record;
  }

  std::filesystem::path folder_;
};

TEST_F(AuditLogTest, SaysWhoDidWhatAndWhatBecameOfIt) {
  {
    AuditLog log(OpenAuditFile(path()).value());
    log.Tell(Call(Status()));
    log.Tell(Call(Status(Code::kUnauthenticated, "IDENTITY", "array a-17 is not 3.5")));
    log.TellFolded({.caller = "token:ann", .method = "Kernels.Rmse", .status = "UNAVAILABLE"}, 90);
  }
  const std::vector<Json> lines = Read();
  ASSERT_EQ(lines.size(), 3u);
  Json first = lines[0];
  EXPECT_EQ(first["ts"].get<std::string>().size(), 24u);
  first.erase("ts");
  EXPECT_EQ(first, Json::parse(R"({"decision":"done","identity":"token:ann","caller":"token:ann",
      "peer":"ipv4:1.2.3.4:5","method":"Kernels.Rmse","operation":"rmse","status":"OK","bytes_in":16,
      "bytes_out":8,"calls":1,"request_id":"r-1"})"));
  EXPECT_EQ(lines[1]["decision"], "denied");
  EXPECT_EQ(lines[1]["reason"], "IDENTITY");
  EXPECT_EQ(lines[1].dump().find("a-17"), std::string::npos) << "messages may name what callers sent";
  EXPECT_EQ(lines[2]["decision"], "folded");
  EXPECT_EQ(lines[2]["calls"], 90);
}

/// However alike they are, and however often they come: what is the same is put together once.
TEST_F(AuditLogTest, CallsOfOthersAreNotTakenForOnesOwn) {
  std::vector<rpc::CallRecord> calls;
  for (int i = 0; i < 200; ++i) {  // more than are kept
    calls.push_back(Call(Status()));
    calls.back().peer += std::to_string(i);
  }
  for (int i = 0; i < 20; ++i) {  // of one caller, and each moves something else
    calls.push_back(Call(Status()));
    rpc::CallRecord& call = calls.back();
    const uint64_t some = i % 5 == 0 ? 0 : 1000 * static_cast<uint64_t>(i);
    (i % 2 == 0 ? call.bytes_in : call.bytes_out) = some;
    (i % 3 == 0 ? call.timing.region_bytes_in : call.timing.region_bytes_out) = some;
    call.request_id = std::string(static_cast<size_t>(1 + i / 4), static_cast<char>('a' + i));
  }
  for (std::string rpc::CallRecord::*member :
       {&rpc::CallRecord::identity, &rpc::CallRecord::caller, &rpc::CallRecord::method,
        &rpc::CallRecord::operation, &rpc::CallRecord::peer, &rpc::CallRecord::request_id})
    for (const char* name : {"", "é\"x", "as long"}) {
      calls.push_back(Call(Status()));  // the one that is known
      calls.push_back(Call(Status()));
      std::string& text = calls.back().*member;
      text = *name == 'a' ? "X" + text.substr(1) : name;
    }
  calls.push_back(Call(Status(Code::kUnavailable, "BUSY", "later")));
  for (const size_t bytes : {1, 5, 2, 128, 3}) {  // and nothing else differs
    calls.push_back(Call(Status()));
    calls.back().request_id = std::string(bytes, 'z');
  }
  {
    AuditLog log(OpenAuditFile(path()).value());
    for (int i = 0; i < 2; ++i)
      for (const auto& call : calls) log.Tell(call);
  }
  const std::vector<Json> lines = Read();
  ASSERT_EQ(lines.size(), 2 * calls.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const rpc::CallRecord& call = calls[i % calls.size()];
    EXPECT_EQ(lines[i].value("identity", ""), call.identity);
    EXPECT_EQ(lines[i].value("caller", ""), call.caller);
    EXPECT_EQ(lines[i].value("peer", ""), call.peer);
    EXPECT_EQ(lines[i].value("method", ""), call.method);
    EXPECT_EQ(lines[i].value("operation", ""), call.operation);
    EXPECT_EQ(lines[i].value("request_id", ""), call.request_id);
    EXPECT_EQ(lines[i]["status"], CodeName(call.status.code()));
    EXPECT_EQ(lines[i].value("bytes_in", 0u), call.bytes_in);
    EXPECT_EQ(lines[i].value("bytes_out", 0u), call.bytes_out);
    EXPECT_EQ(lines[i].value("region_bytes_in", 0u), call.timing.region_bytes_in);
    EXPECT_EQ(lines[i].value("region_bytes_out", 0u), call.timing.region_bytes_out);
    EXPECT_EQ(lines[i]["ts"].get<std::string>().size(), 24u);
  }
}

TEST_F(AuditLogTest, EachLineHasItsTime) {
  constexpr auto at = [](int i) { return spdlog::log_clock::time_point(std::chrono::milliseconds(7 * i)); };
  {
    AuditLog log(OpenAuditFile(path()).value());
    for (int i = 0; i < 5; ++i) log.Tell(Call(Status(i < 3 ? Code::kOk : Code::kUnknown, "", "")), at(i));
  }
  const std::vector<Json> lines = Read();
  ASSERT_EQ(lines.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(lines[static_cast<size_t>(i)]["ts"], Timestamp(at(i)));
}

TEST_F(AuditLogTest, AppendsToWhatIsThereAndIsNotForEverybody) {
  { AuditLog(OpenAuditFile(path()).value()).Tell(Call(Status())); }
  { AuditLog(OpenAuditFile(path()).value()).Tell(Call(Status())); }
  EXPECT_EQ(Read().size(), 2u);
  struct stat file {};
  ASSERT_EQ(stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & S_IRWXO, 0u);
}

TEST_F(AuditLogTest, AFileThatCannotBeHadIsNamed) {
  const auto opened = OpenAuditFile(folder_ / "none" / "audit.jsonl");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(std::string(opened.error().message()).find("--audit-log is "), std::string::npos);
}

TEST_F(AuditLogTest, LinesThatAreNotInTheFileAreCounted) {
  auto log = std::make_shared<AuditLog>(OpenAuditFile("/dev/full").value());
  {
    Metrics metrics("1", "cpu", {}, log);
    rpc::CallRecord call = Call(Status());
    metrics.OnCallStart(call.method);
    metrics.OnCallEnd(call);
    EXPECT_TRUE(tilewire::testing::Eventually([&] { return log->dropped() == 1; }));
    EXPECT_NE(metrics.Render().find("tilewire_audit_lines_dropped_total 1\n"), std::string::npos);
  }
}

TEST_F(AuditLogTest, EveryFailedCallIsInALineOrInACount) {
  constexpr int kCalls = 500;
  {
    auto log = std::make_shared<AuditLog>(OpenAuditFile(path()).value());
    Metrics metrics("1", "cpu", {}, log);
    const rpc::CallRecord call = Call(Status(Code::kInvalidArgument, "BAD_VALUE", "no"));
    for (int i = 0; i < kCalls; ++i) {
      metrics.OnCallStart(call.method);
      metrics.OnCallEnd(call);
    }
  }
  int64_t calls = 0;
  for (const Json& line : Read()) calls += line["calls"].get<int64_t>();
  EXPECT_EQ(calls, kCalls);
  EXPECT_LT(Read().size(), size_t{kCalls});
}

/// So that one is found by the other.
TEST_F(AuditLogTest, ACallsTwoLinesAreOfOneTime) {
  constexpr int kCalls = 5000;  // of which some are told while a millisecond ends
  InitLogging("json", "info");
  ::testing::internal::CaptureStderr();
  {
    auto log = std::make_shared<AuditLog>(OpenAuditFile(path()).value());
    Metrics metrics("1", "cpu", {}, log);
    const rpc::CallRecord call = Call(Status());
    for (int i = 0; i < kCalls; ++i) {
      metrics.OnCallStart(call.method);
      metrics.OnCallEnd(call);
    }
  }
  FlushLog();
  std::istringstream logged(::testing::internal::GetCapturedStderr());
  InitLogging("text", "info");
  int calls = 0;
  for (const Json& audited : Read()) {
    std::string line;
    ASSERT_TRUE(std::getline(logged, line));
    ASSERT_EQ(Json::parse(line)["ts"], audited["ts"]) << ++calls;
    ++calls;
  }
  EXPECT_EQ(calls, kCalls);
}

TEST(Decisions, AreWordsForStatuses) {
  EXPECT_EQ(DecisionOf(Status()), "done");
  EXPECT_EQ(DecisionOf(Status(Code::kPermissionDenied, "POLICY", "")), "denied");
  EXPECT_EQ(DecisionOf(Status(Code::kResourceExhausted, "BUSY", "")), "refused");
  EXPECT_EQ(DecisionOf(Status(Code::kCancelled, "CANCELLED", "")), "failed");
}

}  // namespace
}  // namespace tilewire::ops

// Traces of real calls: the spans of both sides on one time line, complete and in order; the program's files.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "client/cpp/client.h"
#include "client/cpp/npy.h"
#include "tests/integration/join.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

using client::ClientStage;
using client::Stage;
using nlohmann::json;

class Trace : public OnBoth {
 protected:
  TestServer::Options options_;
};
TILEWIRE_ON_BOTH(Trace);

/// Server spans moved to the client's time line lie within the call, but for the error that is stated.
void ExpectWithinTheCall(const client::Reply& reply) {
  ASSERT_TRUE(reply.trace);
  const double error = reply.trace->clock_error_us + 1e-3;
  double begin = 0, end = 0;
  for (const auto& span : reply.trace->spans)
    if (span.stage == ClientStage::kCall) end = span.end_us;
  EXPECT_GT(end, 0);
  EXPECT_GE(error, 0);
  EXPECT_LE(error, end);
  for (const auto& span : reply.timing.spans) {
    EXPECT_GE(reply.trace->server_origin_us + span.begin_us, begin - error) << Name(span.stage);
    EXPECT_LE(reply.trace->server_origin_us + span.end_us, end + error) << Name(span.stage);
    EXPECT_LE(span.begin_us, span.end_us);
  }
  for (const auto& span : reply.trace->spans) {
    EXPECT_GE(span.begin_us, begin);
    EXPECT_LE(span.end_us, end);
  }
}

/// `other` is what the spans leave of the wall time, and limits the call where it is the longest.
void ExpectOtherIsTheRest(const client::Timing& timing) {
  ASSERT_TRUE(timing.other_us);
  EXPECT_GT(*timing.other_us, 0) << "nothing begins and ends in no time";
  EXPECT_LT(*timing.other_us, timing.wall_us);
  double gaps = 0;
  for (const auto& span : client::OtherSpans(timing)) gaps += span.end_us - span.begin_us;
  EXPECT_NEAR(gaps, *timing.other_us, 0.1);
  double longest = 0;
  for (const auto& stage :
       {timing.receive_us, timing.stage_us, timing.h2d_us, timing.kernel_us, timing.d2h_us, timing.send_us})
    longest = std::max(longest, stage.value_or(0));
  EXPECT_EQ(timing.bottleneck == "other", *timing.other_us > longest);
}

/// Blocks of a stage, by operand.
std::set<std::pair<uint32_t, uint64_t>> BlocksOf(const client::Reply& reply, Stage stage) {
  std::set<std::pair<uint32_t, uint64_t>> blocks;
  for (const auto& span : reply.timing.spans)
    if (span.stage == stage) blocks.emplace(span.operand, span.index);
  return blocks;
}

std::set<std::pair<uint32_t, uint64_t>> AllBlocks(uint32_t operands) {
  std::set<std::pair<uint32_t, uint64_t>> blocks;
  for (uint32_t operand = 0; operand < operands; ++operand)
    for (uint64_t block = 0; block < kBlocks; ++block) blocks.emplace(operand, block);
  return blocks;
}

TEST_P(Trace, OfAStripedRmse) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1), b = Floats(kBytes / 4, 2);
  client::CallOptions options;
  options.trace = true;
  options.form = client::CallForm::kStream;
  options.connections = 4;
  options.message_bytes = 20'000;
  const auto reply = client::Client::Connect(server.address()).Rmse(Source(a), Source(b), {}, options);
  ASSERT_TRUE(reply) << reply.error().ToString();
  ExpectWithinTheCall(reply->reply);
  ExpectOtherIsTheRest(reply->reply.timing);
  EXPECT_EQ(BlocksOf(reply->reply, Stage::kStage), AllBlocks(2));
  EXPECT_EQ(BlocksOf(reply->reply, Stage::kH2D).size(), staged() ? 2 * kBlocks : 0);
  EXPECT_EQ(BlocksOf(reply->reply, Stage::kKernel).size(), reply->reply.timing.ranges + 1)
      << "and the finish";
  // As many messages went out as came in, on the same streams.
  std::map<uint32_t, std::vector<double>> written, received;
  uint64_t bytes = 0;
  for (const auto& span : reply->reply.trace->spans)
    if (span.stage == ClientStage::kWrite) {
      written[span.stream].push_back(span.begin_us);
      bytes += span.bytes;
    }
  for (const auto& span : reply->reply.timing.spans)
    if (span.stage == Stage::kReceive)
      received[span.track].push_back(reply->reply.trace->server_origin_us + span.end_us);
  EXPECT_EQ(bytes, 2 * kBytes);
  ASSERT_EQ(written.size(), received.size());
  for (const auto& [stream, begins] : written) {
    ASSERT_EQ(begins.size(), received[stream].size()) << stream;
    for (size_t k = 0; k < begins.size(); ++k)
      EXPECT_LE(begins[k], received[stream][k] + reply->reply.trace->clock_error_us + 1e-3)
          << "received before it was sent";
  }
  ExpectUnharmed(server);
}

TEST_P(Trace, OfAUnaryCall) {
  TestServer server(device(), options_);
  const std::string a = Floats(1000, 1);
  const ArraySpec spec = MakeSpec(DType::kF32, std::vector<int64_t>{1000}).value();
  const auto source = client::ArraySource::FromMemory(spec, a.data());
  client::CallOptions options;
  options.trace = true;
  const auto reply = client::Client::Connect(server.address()).Rmse(source, source, {}, options);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_FALSE(reply->reply.streamed);
  ExpectWithinTheCall(reply->reply);
  EXPECT_EQ(BlocksOf(reply->reply, Stage::kStage).size(), 2u);
  EXPECT_EQ(reply->reply.timing.bytes_copied, 8008u);
  ExpectOtherIsTheRest(reply->reply.timing);
}

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The program's traces of a server in this process.
class TraceFiles : public OnBoth {
 protected:
  TraceFiles() {
    directory_ = ::testing::TempDir() + "tilewire-trace-" + std::to_string(getpid());
    std::filesystem::create_directory(directory_);
    for (const char* name : {"a.npy", "b.npy"})
      std::ofstream(File(name), std::ios::binary)
          << client::FormatNpyHeader(MakeSpec(DType::kF32, kShape).value()) << Floats(kBytes / 4, *name);
  }
  ~TraceFiles() override { std::filesystem::remove_all(directory_); }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  std::string directory_;
};
TILEWIRE_ON_BOTH(TraceFiles);

TEST_P(TraceFiles, OfTheProgramTellEveryBlockWithinTheCall) {
  TestServer server(device(), {});
  const std::vector<std::vector<std::string>> commands{
      {"rmse", File("a.npy"), File("b.npy")},
      {"gaussian-pdf", File("a.npy"), File("g.npy"), "--mean", "0.5", "--stddev", "0.2"}};
  for (const auto& command : commands) {
    const bool rmse = command[0] == "rmse";
    std::vector<std::string> arguments{"--server", server.address(), "--connections", "3",
                                       "--trace",  File("t.json"),   "--timeline",    File("t.svg")};
    arguments.insert(arguments.end(), command.begin(), command.end());
    Program program(TILEWIRE_TILEWIRE, arguments);
    ASSERT_EQ(program.Wait(120), 0) << program.err();
    const json file = json::parse(Text(File("t.json")));
    const double error = file["otherData"]["trace"]["clock_error_us"].get<double>() + 1e-3;
    double call = 0;
    std::map<std::string, std::set<std::string>> places;
    for (const json& event : file["traceEvents"])
      if (event["name"] == "call") call = event["dur"].get<double>();
    for (const json& event : file["traceEvents"]) {
      if (event["ph"] != "X") continue;
      const double begin = event["ts"].get<double>(), end = begin + event["dur"].get<double>();
      const bool there = event["cat"] == "server";
      EXPECT_GE(begin, there ? -error : 0) << event.dump();
      EXPECT_LE(end, call + (there ? error : 1e-3)) << event.dump();
      if (there && event["args"].contains("place"))
        places[event["name"].get<std::string>()].insert(event["args"]["place"].get<std::string>());
    }
    EXPECT_EQ(places["stage"].size(), (rmse ? 2 : 1) * kBlocks);
    EXPECT_EQ(places["h2d"].size(), staged() ? (rmse ? 2 : 1) * kBlocks : 0);
    EXPECT_EQ(places["kernel"].size(), file["otherData"]["timing"]["ranges"].get<size_t>());
    EXPECT_EQ(places["send"].size(), rmse ? 0 : kBlocks);
    EXPECT_EQ(places["d2h"].size(), staged() ? (rmse ? 1 : kBlocks) : 0);
    const std::string svg = Text(File("t.svg"));
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    EXPECT_NE(svg.find("bottleneck " + file["otherData"]["timing"]["bottleneck"].get<std::string>()),
              std::string::npos);
    std::filesystem::remove(File("t.json"));
    std::filesystem::remove(File("t.svg"));
  }
  server.ExpectIdle();
}

}  // namespace
}  // namespace tilewire::testing

// Clients that stall must cost the others nothing: not their streams, not their answers, not their memory.
#include <fstream>

#include "tests/bench/crowd.h"
#include "tests/integration/helpers.h"
#include "tests/integration/join.h"
#include "tests/integration/program.h"
#include "tests/unit/sanitized.h"

namespace tilewire::testing {
namespace {

using bench::Stall;
using bench::StalledCrowd;
using std::chrono::milliseconds;

constexpr int64_t kOperandBytes = 8 << 20;

std::vector<Stall> Mixed(size_t count, std::vector<Stall> kinds) {
  std::vector<Stall> stalls;
  for (size_t i = 0; i < count; ++i) stalls.push_back(kinds[i % kinds.size()]);
  return stalls;
}

/// Until they are silent; on a busy machine that takes its time, and only a dead server takes so long.
void Settle(const StalledCrowd& crowd) {
  ASSERT_TRUE(crowd.WaitUntilQuiet(milliseconds(300), std::chrono::minutes(2)));
}

int64_t ResidentMax(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  int64_t kib = 0;
  while (status >> word)
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  return 0;
}

TEST(Overload, StalledClientsCutNobody) {
  TestServer::Options options;
  options.engine.max_in_flight = 12;
  options.engine.queue_length = 200;
  options.engine.queue_seconds = 600;
  options.rpc.idle_seconds = 600;
  TestServer server(options);
  // Under way before the crowd comes, and ended after it has.
  const std::vector<int64_t> shape{512, 1024};
  const std::string data = Floats(512 * 1024, 3);
  std::vector<std::unique_ptr<RawStream>> uploads;
  for (int i = 0; i < 4; ++i) {
    uploads.push_back(std::make_unique<RawStream>(server.Connect(), 600));
    ASSERT_TRUE(uploads.back()->Open(TransposeOpen(v1::DTYPE_F32, shape)));
    ASSERT_TRUE(uploads.back()->SendAll(0, data, 256 << 10, 0, data.size() / 2));
  }
  {
    // Eight run and stall; the others wait to be let in and send all the same, as far as they are allowed to.
    const StalledCrowd crowd(
        server.address(),
        Mixed(200, {Stall::kOneOperand, Stall::kOneOperand, Stall::kOneOperand, Stall::kMidMessage}),
        kOperandBytes);
    Settle(crowd);
    for (auto& upload : uploads) {
      ASSERT_TRUE(upload->SendAll(0, data, 256 << 10, data.size() / 2));
      const auto status = upload->End();
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(upload->output == HostTranspose(data, DType::kF32, shape));
    }
    const std::string a = Floats(512, 1), b = Floats(512, 2);
    for (int i = 0; i < 50; ++i) {
      grpc::ClientContext context;
      v1::RmseResponse response;
      const auto status =
          v1::Kernels::NewStub(server.Connect())->Rmse(&context, RmseCall({512}, a, b), &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(response.result().data() == HostRmse(a, b, DType::kF32, {512}));
    }
    const auto counts = crowd.counts();
    EXPECT_EQ(counts.cut, 0) << "gRPC ran out of memory for receiving and ended streams";
    EXPECT_EQ(counts.ended + counts.reset + counts.closed, 0);
    EXPECT_GE(counts.sent, 150 * (64 << 10)) << "those who wait send until their window is full";
  }
  ExpectUnharmed(server);
}

TEST(Overload, MemoryStaysWithinItsBounds) {
  constexpr int64_t kMi = 1 << 20, kBudgets = (160 + 16) * kMi;
  Program program({"--device", "cpu", "--listen", "localhost:0", "--device-bytes", "160MiB", "--pinned-bytes",
                   "16MiB", "--block-bytes", "64KiB", "--queue-seconds", "600", "--idle-seconds", "600",
                   "--log-level", "error"});
  const std::string address = program.Ready()[0];
  const StalledCrowd crowd(
      address, Mixed(160, {Stall::kMidMessage, Stall::kOneOperand, Stall::kReadsNothing, Stall::kMidBlock}),
      kOperandBytes);
  Settle(crowd);
  EXPECT_EQ(crowd.counts().cut, 0);
  EXPECT_TRUE(program.running());
  if (!kSanitized) {
    EXPECT_LE(ResidentMax(program.pid()), kBudgets + 256 * kMi);
  }
}

TEST(Overload, StreamsBeyondTheReceiveMemoryAreToldToComeBack) {
  TestServer::Options options;
  options.rpc.receive.quota = 10 << 20;  // streams of one caller may hold 5.7 MiB: five that are read
  TestServer server(options);
  std::vector<std::unique_ptr<RawStream>> running;
  for (int i = 0; i < 5; ++i) {
    running.push_back(std::make_unique<RawStream>(server.Connect()));
    ASSERT_TRUE(running.back()->Open(RmseOpen(v1::DTYPE_F32, {1000}))) << i;
  }
  RawStream sixth(server.Connect());
  EXPECT_FALSE(sixth.Open(RmseOpen(v1::DTYPE_F32, {1000})));
  ExpectError(sixth.End(), kExhausted, "BUSY");
  EXPECT_EQ(sixth.context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  {
    // The job goes on without a stream that finds no room.
    v1::ExecuteRequest join;
    join.mutable_join()->set_job(running[0]->opened.job());
    RawStream joins(server.Connect());
    joins.Start();
    joins.stream->Write(join);
    ExpectError(joins.End(), kExhausted, "BUSY");
  }
  const std::string a = Floats(1000, 1), b = Floats(1000, 2);
  for (auto& stream : running) {
    ASSERT_TRUE(stream->SendAll(0, a) && stream->SendAll(1, b));
    const auto status = stream->End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(stream->output == HostRmse(a, b, DType::kF32, {1000}));
  }
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing

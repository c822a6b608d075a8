// What the calls of one connection may take at once and in a second, over real sockets.
#include <array>
#include <filesystem>
#include <future>

#include "tests/integration/arrays.h"
#include "tests/integration/join.h"
#include "tests/integration/program.h"
#include "tests/integration/tls.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

/// How a call without any work ends, and what it is told to wait.
struct Told {
  grpc::Status status;
  std::string pushback;
};

Told DescribeBy(const std::shared_ptr<grpc::Channel>& channel, const std::string& bearer = "") {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  if (!bearer.empty()) context.AddMetadata("authorization", "Bearer " + bearer);
  v1::DescribeResponse response;
  Told told{v1::Device::NewStub(channel)->Describe(&context, {}, &response), ""};
  const auto& trailing = context.GetServerTrailingMetadata();
  if (const auto found = trailing.find("grpc-retry-pushback-ms"); found != trailing.end())
    told.pushback.assign(found->second.data(), found->second.size());
  return told;
}

/// Streams with a job each, which wait for its bytes until they are let go.
class HeldStreams {
 public:
  HeldStreams(const std::shared_ptr<grpc::Channel>& channel, int count) {
    for (int i = 0; i < count; ++i) {
      streams_.push_back(std::make_unique<RawStream>(channel));
      EXPECT_TRUE(streams_.back()->Open(RmseOpen(v1::DTYPE_F32, {1000})));
    }
  }
  void LetGo() {
    for (const auto& stream : streams_) {
      stream->context.TryCancel();
      EXPECT_EQ(stream->Drain().error_code(), StatusCode::CANCELLED);
    }
    streams_.clear();
  }

 private:
  std::vector<std::unique_ptr<RawStream>> streams_;
};

grpc::Status EmptyStream(const std::shared_ptr<grpc::Channel>& channel) {
  RawStream stream(channel);
  stream.Start();
  return stream.End();
}

TEST(ConnectionLimits, PlacesOfCallsAndStreams) {
  TestServer::Options options;
  options.rpc.connection_use = {.calls = 3, .streams = 2};
  TestServer server(options);
  const auto mine = server.Connect(), others = server.Connect();
  HeldStreams two(mine, 2);
  ExpectError(EmptyStream(mine), StatusCode::RESOURCE_EXHAUSTED, "BUSY", "streams of the connection", "2",
              "2 (--max-streams-per-connection)");
  EXPECT_TRUE(DescribeBy(mine).status.ok()) << "which is no stream";
  EXPECT_TRUE(EmptyStream(others).error_code() != StatusCode::RESOURCE_EXHAUSTED) << "which have their own";
  two.LetGo();
  EXPECT_TRUE(Eventually([&] { return EmptyStream(mine).error_code() != StatusCode::RESOURCE_EXHAUSTED; }));
  server.ExpectIdle();
}

TEST(ConnectionLimits, WhoCallsIsAskedBeforeThereIsAPlace) {
  const Files files;
  TestServer::Options options;
  options.rpc.connection_use = {.calls = 1};
  options.rpc.credentials.tokens = files.Write("tokens", TokenLine("ann", "right"));
  TestServer server(options);
  const auto mine = server.Connect();
  HeldStreams one(mine, 1);
  const Told full = DescribeBy(mine, "ann.right");
  ExpectError(full.status, StatusCode::RESOURCE_EXHAUSTED, "BUSY", "calls of the connection", "1",
              "1 (--max-calls-per-connection)");
  EXPECT_EQ(full.pushback, "250");
  EXPECT_EQ(DescribeBy(mine, "ann.wrong").status.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(DescribeBy(server.Connect()).status.ok());
  one.LetGo();
  EXPECT_TRUE(Eventually([&] { return DescribeBy(mine, "ann.right").status.ok(); }));
  server.ExpectIdle();
}

TEST(ConnectionLimits, CallsASecond) {
  ManualTime time;
  TestServer::Options options;
  options.engine.time = &time;
  options.rpc.connection_use = {.calls_per_second = 2};
  TestServer server(options);
  const auto mine = server.Connect(), others = server.Connect();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(DescribeBy(mine).status.ok());
  const Told refused = DescribeBy(mine);
  ExpectError(refused.status, StatusCode::RESOURCE_EXHAUSTED, "BUSY", "calls a second of the connection",
              "more", "2 (--calls-per-second-per-connection)");
  EXPECT_EQ(refused.pushback, "500");
  EXPECT_TRUE(DescribeBy(others).status.ok());
  time.Advance(std::chrono::milliseconds(500));
  EXPECT_TRUE(DescribeBy(mine).status.ok()) << "as it was told";
  EXPECT_FALSE(DescribeBy(mine).status.ok());
  server.ExpectIdle();
}

/// A message of 400 bytes a row, and one as large as its answer.
void TransposeBy(const std::shared_ptr<grpc::Channel>& connection, int rows) {
  grpc::ClientContext context;
  v1::TransposeRequest request;
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {100, rows});
  request.mutable_input()->set_data(Floats(100 * rows, 1));
  request.mutable_op()->add_axes(1);
  request.mutable_op()->add_axes(0);
  v1::TransposeResponse response;
  const grpc::Status done = v1::Kernels::NewStub(connection)->Transpose(&context, request, &response);
  EXPECT_TRUE(done.ok()) << done.error_message();
}

TEST(ConnectionLimits, BytesASecondBothWays) {
  constexpr double kRate = 150'000;
  ManualTime time;
  TestServer::Options options;
  options.engine.time = &time;
  options.rpc.connection_use = {.bytes_per_second = kRate};
  TestServer server(options);
  const auto mine = server.Connect(), others = server.Connect();
  // 100,000 bytes come, which is no debt, and 100,000 go.
  TransposeBy(mine, 250);
  const Told refused = DescribeBy(mine);
  ExpectError(refused.status, StatusCode::RESOURCE_EXHAUSTED, "BUSY", "bytes a second of the connection",
              "more", "150000 (--bytes-per-second-per-connection)");
  const int wait = refused.pushback.empty() ? 0 : std::stoi(refused.pushback);
  EXPECT_GE(wait, 334) << "50,000 bytes of debt";
  EXPECT_LE(wait, 400) << "and those of messages around them";
  EXPECT_TRUE(DescribeBy(others).status.ok());
  time.Advance(std::chrono::milliseconds(wait));
  EXPECT_TRUE(DescribeBy(mine).status.ok());
  server.ExpectIdle();
}

/// Though those of small messages are counted with their answers.
TEST(ConnectionLimits, BytesOfSmallMessagesToo) {
  ManualTime time;
  TestServer::Options options;
  options.engine.time = &time;
  options.rpc.connection_use = {.bytes_per_second = 20'000};
  TestServer server(options);
  const auto mine = server.Connect();
  for (int call = 0; call < 3; ++call) TransposeBy(mine, 10);  // 4,000 bytes each way
  const Told refused = DescribeBy(mine);
  EXPECT_EQ(refused.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  const int wait = refused.pushback.empty() ? 0 : std::stoi(refused.pushback);
  EXPECT_GE(wait, 200) << "4,000 bytes of debt";
  EXPECT_LE(wait, 250);
  server.ExpectIdle();
}

int PushbackMs(const std::shared_ptr<grpc::Channel>& channel) {
  const Told told = DescribeBy(channel);
  EXPECT_EQ(told.status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << told.status.error_message();
  return told.pushback.empty() ? 0 : std::stoi(told.pushback);
}

/// A server that counts what each connection moves, and an array there of so many bytes.
class Stored {
 public:
  Stored(double bytes_per_second, int64_t bytes) : server_(Options(bytes_per_second)), owner_(server_) {
    const auto put = owner_.Put(PutOpen(v1::DTYPE_U8, {bytes}), std::string(static_cast<size_t>(bytes), 'x'));
    EXPECT_TRUE(put.status.ok()) << put.status.error_message();
    id_ = put.id;
  }
  TestServer& server() { return server_; }
  const std::string& id() const { return id_; }
  /// Once the owner, who sent it all, has no debt any more.
  void DeleteAfter(Clock::duration time) {
    time_.Advance(time);
    EXPECT_TRUE(owner_.Delete(id_).ok());
    server_.ExpectIdle();
  }

 private:
  TestServer::Options Options(double bytes_per_second) {
    TestServer::Options options;
    options.engine.time = &time_;
    options.rpc.connection_use = {.bytes_per_second = bytes_per_second};
    return options;
  }

  ManualTime time_;
  TestServer server_;
  ArrayCaller owner_;
  std::string id_;
};

TEST(ConnectionLimits, ResultsOfStreamsWhetherOrNotTheyEndWell) {
  constexpr int64_t kStored = 40'000'000;  // more than flow control lets through
  Stored stored(100'000, kStored);
  ArrayCaller whole(stored.server()), some(stored.server());  // a connection each
  EXPECT_EQ(whole.Get(stored.id()).bytes.size(), size_t{kStored});
  const int of_all = PushbackMs(whole.channel);
  EXPECT_GE(of_all, 399'000);
  EXPECT_LE(of_all, 400'000) << "once, and messages around them";
  v1::GetRequest request;
  request.set_array(stored.id());
  const auto context = some.Context();
  const auto stream = some.arrays->Get(context.get(), request);
  v1::ExecuteResponse response;
  for (size_t came = 0; came < 5'000'000 && stream->Read(&response);) came += response.chunk().data().size();
  context->TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
  const int of_some = PushbackMs(some.channel);
  EXPECT_GE(of_some, 35'000) << "all but the last message, and a second's worth";
  EXPECT_LE(of_some, of_all);
  stored.DeleteAfter(std::chrono::minutes(10));
  int told = 0;
  for (const auto& record : stored.server().observer().records())
    told += record.method == "Arrays.Get" && record.bytes_out >= 4'000'000 ? 1 : 0;
  EXPECT_EQ(told, 2) << "of logs and audit";
}

TEST(ConnectionLimits, EachConnectionOfAStripedResultBearsItsOwn) {
  constexpr int64_t kStored = 20'000'000;  // more than flow control lets through
  Stored stored(10'000, kStored);
  ArrayCaller one(stored.server()), another(stored.server());  // a connection each
  const auto context = one.Context();
  v1::Opened opened;
  const auto stream = one.BeginGet(context.get(), stored.id(), 2, &opened);
  ASSERT_NE(stream, nullptr);
  JoinedStream joined(another.channel);
  ASSERT_TRUE(joined.Join(opened.job()));
  joined.stream->WritesDone();
  const auto read = [](auto* from, int64_t at_least) {
    v1::ExecuteResponse next;
    int64_t bytes = 0;
    while (bytes < at_least && from->Read(&next)) bytes += static_cast<int64_t>(next.chunk().data().size());
    return bytes;
  };
  // The first has a message on its way, and no more than that while nobody reads it.
  const int64_t begun = read(joined.stream.get(), 1 << 20);
  auto of_another = std::async(std::launch::async, [&] { return read(joined.stream.get(), kStored); });
  const std::array<int64_t, 2> came{read(stream.get(), kStored), begun + of_another.get()};
  EXPECT_TRUE(stream->Finish().ok() && joined.stream->Finish().ok());
  EXPECT_EQ(came[0] + came[1], kStored);
  for (const size_t i : {0, 1}) {
    const int64_t debt_ms = came[i] / 10 - 1000, told = PushbackMs(i == 0 ? one.channel : another.channel);
    EXPECT_GE(told, debt_ms) << i;
    EXPECT_LE(told, debt_ms + 200) << i << ", messages around them";
  }
  stored.DeleteAfter(std::chrono::minutes(40));
}

TEST(ConnectionLimits, UnixSocketsHaveNoneSinceNobodyCanTellTheirsApart) {
  const Files files;
  ManualTime time;
  TestServer::Options options;
  options.engine.time = &time;
  options.rpc.listen = {"localhost:0", "unix:" + files.Path("socket")};
  options.rpc.connection_use = {.calls = 1, .streams = 1, .calls_per_second = 1};
  TestServer server(options);
  const auto local = ConnectTo(server.rpc().addresses()[1]);
  HeldStreams held(local, 2);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(DescribeBy(local).status.ok()) << i;
  held.LetGo();
  server.ExpectIdle();
}

TEST(ConnectionLimits, TheProgramHasThem) {
  Program program({"--device", "cpu", "--listen", "127.0.0.1:0", "--max-calls-per-connection", "2",
                   "--max-streams-per-connection", "1", "--calls-per-second-per-connection", "1000000",
                   "--bytes-per-second-per-connection", "16GiB"});
  const auto ready = program.Ready();
  ASSERT_EQ(ready.size(), 1u) << program.err();
  const auto channel = ConnectTo(ready[0]);
  HeldStreams one(channel, 1);
  EXPECT_TRUE(
      Eventually([&] { return EmptyStream(channel).error_code() == StatusCode::RESOURCE_EXHAUSTED; }));
  ExpectError(EmptyStream(channel), StatusCode::RESOURCE_EXHAUSTED, "BUSY", "streams of the connection", "1",
              "1 (--max-streams-per-connection)");
  EXPECT_TRUE(DescribeBy(channel).status.ok());
  one.LetGo();
}

}  // namespace
}  // namespace tilewire::testing

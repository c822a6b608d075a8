// Every way in which a striped job can go wrong: refused joins, lost streams, bytes missing, deadlines,
// stalls.
#include "tests/integration/join.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

class JoinErrors : public OnBoth {
 protected:
  TestServer::Options options_;
};

TEST_P(JoinErrors, RefusedJoinsDoTheJobNoHarm) {
  options_.engine.max_streams = 2;
  options_.rpc.identity_header = "x-user";
  TestServer server(device(), options_), other(device(), options_);
  const std::string a = Floats(kBytes / 4, 5), b = Floats(kBytes / 4, 6);
  RawStream first(server.Connect());
  first.context.AddMetadata("x-user", "ann");
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 9)));
  EXPECT_EQ(first.opened.max_streams(), 2u);
  const std::string job = first.opened.job();
  const auto refused = [](TestServer& at, const std::string& user, const std::string& id) {
    JoinedStream stream(at.Connect());
    stream.context.AddMetadata("x-user", user);
    EXPECT_FALSE(stream.Join(id));
    return stream.Drain();
  };
  ExpectError(refused(server, "ann", ""), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_INSTANCE", "join.job",
              "");
  ExpectError(refused(server, "ann", job.substr(0, job.size() - 1) + "g"), grpc::StatusCode::NOT_FOUND, "JOB",
              "join.job");
  ExpectError(refused(server, "ann", std::string(60'000, 'x')), grpc::StatusCode::INVALID_ARGUMENT,
              "BAD_VALUE", "join.job", "60000 characters");
  ExpectError(refused(server, "bob", job), grpc::StatusCode::NOT_FOUND, "JOB", "join.job", job);
  ExpectError(refused(other, "ann", job), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_INSTANCE", "join.job",
              job);
  JoinedStream second(server.Connect());
  second.context.AddMetadata("x-user", "ann");
  ASSERT_TRUE(second.Join(job));
  ExpectError(refused(server, "ann", job), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT",
              "streams of the job", "3", "2");
  ASSERT_TRUE(first.SendAll(0, a));
  ASSERT_TRUE(second.SendAll(1, b));
  first.stream->WritesDone();
  grpc::Status late;  // LIMIT until the server has seen the half-close
  EXPECT_TRUE(Eventually([&] {
    late = refused(server, "ann", job);
    return late.error_code() == grpc::StatusCode::FAILED_PRECONDITION;
  }));
  ExpectError(late, grpc::StatusCode::FAILED_PRECONDITION, "JOIN_LATE");
  EXPECT_TRUE(second.End().ok());
  EXPECT_TRUE(first.Drain().ok());
  EXPECT_TRUE(first.output == HostRmse(a, b, DType::kF32, kShape));
  server.ExpectIdle();
  ExpectError(refused(server, "ann", job), grpc::StatusCode::NOT_FOUND, "JOB", "join.job",
              job);  // it has ended
}

TEST_P(JoinErrors, AStreamThatIsLostEndsAllOfThem) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 8);
  struct Loss {
    const char* name;
    std::function<void(RawStream&)> happen;
    grpc::StatusCode code;
    std::string reason;
  };
  const std::vector<Loss> losses{
      {"cancelled", [](RawStream& s) { s.context.TryCancel(); }, grpc::StatusCode::CANCELLED, ""},
      {"broke the rule", [](RawStream& s) { s.Send(0, 1, "x"); }, grpc::StatusCode::INVALID_ARGUMENT,
       "RUN_RULE"},
      {"sent a byte twice",
       [&](RawStream& s) {
         s.Send(0, 0, std::string_view(a).substr(0, kBlock));
         s.Send(0, 0, "x");
       },
       grpc::StatusCode::INVALID_ARGUMENT, "RUN_RULE"},
      {"left a block open",
       [](RawStream& s) {
         s.Send(0, 5 * kBlock, "xxxx");
         s.stream->WritesDone();
       },
       grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING"},
      {"opened again",
       [](RawStream& s) {
         v1::ExecuteRequest again;
         again.mutable_join()->set_job("x");
         s.stream->Write(again);
       },
       grpc::StatusCode::INVALID_ARGUMENT, "BAD_MESSAGE"}};
  for (const Loss& loss : losses)
    for (const size_t victim : {0, 1, 2}) {
      SCOPED_TRACE(std::string(loss.name) + ", stream " + std::to_string(victim));
      RawStream first(server.Connect());
      JoinedStream second(server.Connect()), third(server.Connect());
      ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 3)));
      ASSERT_TRUE(second.Join(first.opened.job()));
      ASSERT_TRUE(third.Join(first.opened.job()));
      ASSERT_TRUE(second.SendAll(0, a, 1 << 20, 10 * kBlock, 12 * kBlock));
      RawStream* streams[] = {&first, &second, &third};
      loss.happen(*streams[victim]);
      for (size_t i = 0; i < 3; ++i) {
        const auto status = streams[i]->Drain();
        if (i != victim) {
          ExpectError(status, grpc::StatusCode::UNAVAILABLE, "STREAM_LOST");
        } else if (loss.reason.empty()) {
          EXPECT_EQ(status.error_code(), loss.code);
        } else {
          ExpectError(status, loss.code, loss.reason);
        }
      }
      server.ExpectIdle();
    }
  ExpectUnharmed(server);
}

TEST_P(JoinErrors, BytesThatNobodySentAreMissedWhenAllHaveEnded) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 8);
  RawStream first(server.Connect());
  JoinedStream second(server.Connect());
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(first.SendAll(0, a, 1 << 20, 0, 20 * kBlock));
  first.stream->WritesDone();
  ASSERT_TRUE(second.SendAll(0, a, 1 << 20, 21 * kBlock));
  second.stream->WritesDone();
  ExpectError(second.Drain(), grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING");
  ExpectError(first.Drain(), grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING");
  ExpectUnharmed(server);
}

TEST_P(JoinErrors, TheEarliestDeadlineEndsTheJob) {
  TestServer server(device(), options_);
  RawStream first(server.Connect());
  JoinedStream second(server.Connect(), 5);
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ExpectError(first.Drain(), grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE");
  EXPECT_EQ(second.Drain().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectUnharmed(server);
}

TEST_P(JoinErrors, AStalledStreamIsGivenUpAndTheOthersAreTold) {
  OwnTimeOfServer time;
  TestServer server(device(), time.Options());
  const std::string a = Floats(kBytes / 4, 8);
  RawStream first(server.Connect(), OwnTimeOfServer::kDeadline);
  JoinedStream second(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(first.SendAll(0, a, 1 << 20, 0, 20 * kBlock));
  first.stream->WritesDone();  // its share is sent: nothing more is expected of it
  ASSERT_TRUE(HasHalfClosed(server, first));
  ASSERT_TRUE(OwnTimeOfServer::OpenedIsTaken(server, first, second.number));
  ExpectError(time.DrainWhileItPasses(server, second, first), grpc::StatusCode::DEADLINE_EXCEEDED, "IDLE");
  ExpectError(first.Drain(), grpc::StatusCode::UNAVAILABLE, "STREAM_LOST");
  ExpectUnharmed(server);
}

TEST_P(JoinErrors, StreamsThatShareAnUplinkHaveLongerForABlock) {
  OwnTimeOfServer time;
  TestServer server(device(), time.Options());
  const std::string a = Floats(kBytes / 4, 8);
  RawStream first(server.Connect(), OwnTimeOfServer::kDeadline);
  JoinedStream second(server.Connect(), OwnTimeOfServer::kDeadline),
      third(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 3)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(third.Join(first.opened.job()));
  time.Pass(server, 20);  // longer than one stream may, shorter than three
  ASSERT_TRUE(first.SendAll(0, a));
  for (RawStream* stream : {&first, static_cast<RawStream*>(&second), static_cast<RawStream*>(&third)})
    stream->stream->WritesDone();
  std::map<uint64_t, std::string> pieces;
  std::mutex mutex;
  std::thread others([&] {
    EXPECT_TRUE(DrainPieces(second, &pieces, &mutex).ok());
    EXPECT_TRUE(DrainPieces(third, &pieces, &mutex).ok());
  });
  EXPECT_TRUE(DrainPieces(first, &pieces, &mutex).ok());
  others.join();
  ExpectUnharmed(server);
}

TEST_P(JoinErrors, WhileDrainingRunningJobsMayStillBeJoined) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 5), b = Floats(kBytes / 4, 6);
  RawStream first(server.Connect());
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 2)));
  server.rpc().BeginDrain();
  JoinedStream second(server.Connect());
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(first.SendAll(0, a));
  ASSERT_TRUE(second.SendAll(1, b));
  EXPECT_TRUE(second.End().ok());
  EXPECT_TRUE(first.End().ok());
  EXPECT_TRUE(first.output == HostRmse(a, b, DType::kF32, kShape));
  server.ExpectIdle();
}

TILEWIRE_ON_STAGED(JoinErrors);

}  // namespace
}  // namespace tilewire::testing

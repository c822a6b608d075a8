// Health.Watch: a service's state, and every change of it.
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

using grpc::health::v1::HealthCheckResponse;

/// A watch of one service, read by the test.
class Watching {
 public:
  Watching(const std::shared_ptr<grpc::Channel>& channel, const std::string& service)
      : stub_(grpc::health::v1::Health::NewStub(channel)) {
    request_.set_service(service);
    reader_ = stub_->Watch(&context_, request_);
  }
  /// The next state; minus the code of the status, should the watch be over.
  int Next() {
    HealthCheckResponse response;
    if (reader_->Read(&response)) return response.status();
    return -static_cast<int>(reader_->Finish().error_code());
  }
  void Cancel() { context_.TryCancel(); }

 private:
  const std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  grpc::ClientContext context_;
  grpc::health::v1::HealthCheckRequest request_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

constexpr int kCancelled = -static_cast<int>(grpc::StatusCode::CANCELLED);

TEST(HealthWatch, TellsEveryChangeOfItsService) {
  TestServer server;
  Watching readiness(server.Connect(), "readiness"), liveness(server.Connect(), "liveness");
  EXPECT_EQ(readiness.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(liveness.Next(), HealthCheckResponse::SERVING);
  server.rpc().SetReady(false);
  EXPECT_EQ(readiness.Next(), HealthCheckResponse::NOT_SERVING);
  server.rpc().SetReady(false);  // no change, so nothing is told
  server.rpc().SetReady(true);
  EXPECT_EQ(readiness.Next(), HealthCheckResponse::SERVING);
  server.rpc().SetLive(false);
  EXPECT_EQ(liveness.Next(), HealthCheckResponse::NOT_SERVING) << "the first that it hears of";
  readiness.Cancel();
  EXPECT_EQ(readiness.Next(), kCancelled);
  liveness.Cancel();
  EXPECT_EQ(liveness.Next(), kCancelled);
}

TEST(HealthWatch, OfWhatIsUnknownGoesOnUntilItsClientLeaves) {
  TestServer server;
  Watching nobody(server.Connect(), "nobody");
  EXPECT_EQ(nobody.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  nobody.Cancel();
  EXPECT_EQ(nobody.Next(), kCancelled);
}

/// As balancers do, which watch for as long as there is a server.
TEST(HealthWatch, EndsWithTheServer) {
  TestServer server;
  Watching all(server.Connect(), "");
  EXPECT_EQ(all.Next(), HealthCheckResponse::SERVING);
  server.rpc().Shutdown(Clock::now());
  EXPECT_LT(all.Next(), 0);
}

TEST(HealthWatch, ManyComeAndGo) {
  TestServer server;
  for (int i = 0; i < 50; ++i) {
    Watching some(server.Connect(), i % 2 == 0 ? "readiness" : "nobody");
    if (i % 3 == 0) EXPECT_GE(some.Next(), 0);
    some.Cancel();
    if (i % 5 == 0) server.rpc().SetReady(i % 2 == 0);
  }
}

}  // namespace
}  // namespace tilewire::testing

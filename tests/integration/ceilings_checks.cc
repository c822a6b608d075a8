// Device.MeasureCeilings over the wire.
#include "client/cpp/client.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

class Ceilings : public OnBoth {};

TEST_P(Ceilings, AreMeasuredAndLeaveTheServerUnharmed) {
  TestServer server(device(), {});
  auto client = client::Client::Connect(server.address());
  const auto ceilings = client.MeasureCeilings();
  ASSERT_TRUE(ceilings) << ceilings.error().ToString();
  EXPECT_EQ(ceilings->device, "cpu");
  EXPECT_EQ(ceilings->bytes_per_second.size(), staged() ? 7u : 3u);
  for (const auto& [name, rate] : ceilings->bytes_per_second) EXPECT_GT(rate, 0) << name;
  ExpectUnharmed(server);
}

TEST_P(Ceilings, AreRefusedWhileDraining) {
  TestServer server(device(), {});
  server.rpc().BeginDrain();
  const auto refused = client::Client::Connect(server.address()).MeasureCeilings();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(refused.error().reason(), "DRAINING");
  server.ExpectIdle();
}

TILEWIRE_ON_BOTH(Ceilings);

}  // namespace
}  // namespace tilewire::testing

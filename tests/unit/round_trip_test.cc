// The first SETTINGS that a server sends, and finding their acknowledgement in what clients answer.
#include "server/rpc/listener/round_trip.h"

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(uint8_t type, uint8_t flags, size_t payload) {
  std::string frame{static_cast<char>(payload >> 16), static_cast<char>(payload >> 8),
                    static_cast<char>(payload), static_cast<char>(type), static_cast<char>(flags)};
  return frame + std::string(4 + payload, '\x04');  // as tempting a payload as there is
}

const std::string kTheirSettings = Frame(4, 0, 36), kAcknowledgement = Frame(4, 1, 0),
                  kHeaders = Frame(1, 4, 300);

TEST(RoundTrip, FindsTheAcknowledgementAmongOtherFrames) {
  const std::string all = kPreface + kTheirSettings + kHeaders + kAcknowledgement + kHeaders;
  const size_t end = all.size() - kHeaders.size();
  for (size_t bytes = 0; bytes <= all.size(); ++bytes)
    EXPECT_EQ(FindAcknowledgement(all.substr(0, bytes)),
              bytes >= end ? Acknowledged::kYes : Acknowledged::kNotYet)
        << bytes;
}

TEST(RoundTrip, IsNotTakenInByAPayload) {
  EXPECT_EQ(FindAcknowledgement(kPreface + kTheirSettings + Frame(0, 0, 10'000)), Acknowledged::kNotYet);
  EXPECT_EQ(FindAcknowledgement(kPreface + kTheirSettings), Acknowledged::kNotYet)
      << "their own SETTINGS are no acknowledgement";
}

TEST(RoundTrip, DoesNotWaitForWhatCannotBeSeen) {
  EXPECT_EQ(FindAcknowledgement("G"), Acknowledged::kNeverSeen);
  EXPECT_EQ(FindAcknowledgement("GET / HTTP/1.1\r\n\r\n"), Acknowledged::kNeverSeen);
  EXPECT_EQ(FindAcknowledgement("PRI * HTTP/1.0\r\n\r\nSM\r\n\r\n"), Acknowledged::kNeverSeen);
  const std::string much = kPreface + kTheirSettings + Frame(0, 0, 16'000) + Frame(0, 0, 16'000);
  EXPECT_EQ(FindAcknowledgement(much.substr(0, kLookedAtBytes)), Acknowledged::kNeverSeen);
}

TEST(RoundTrip, SettingsAreAFrameOfHttp2) {
  EXPECT_EQ(SettingsFrame({}), std::string("\0\0\0\4\0\0\0\0\0", 9));
  EXPECT_EQ(SettingsFrame({{3, 256}, {6, 0x01020304}}), std::string("\0\0\x0c\4\0\0\0\0\0"
                                                                    "\0\3\0\0\1\0"
                                                                    "\0\6\1\2\3\4",
                                                                    21));
}

}  // namespace
}  // namespace tilewire::rpc

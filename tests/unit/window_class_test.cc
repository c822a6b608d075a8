// Which windows a connection gets: by its round trip, and by what is left of their memory.
#include "server/rpc/listener/window_class.h"

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kNear = WindowClass::kNear, kMiddle = WindowClass::kMiddle, kFar = WindowClass::kFar;
constexpr int64_t kMiddleBytes = PlaceBytes(kMiddle), kFarBytes = PlaceBytes(kFar);

TEST(WindowClass, FollowsTheRoundTrip) {
  EXPECT_EQ(NeededFor(microseconds(0)), kNear);
  EXPECT_EQ(NeededFor(microseconds(99)), kNear);
  EXPECT_EQ(NeededFor(microseconds(100)), kMiddle) << "half the rate of a connection is lost from here on";
  EXPECT_EQ(NeededFor(milliseconds(2)), kMiddle);
  EXPECT_EQ(NeededFor(milliseconds(10)), kMiddle);
  EXPECT_EQ(NeededFor(milliseconds(15)), kFar);
  EXPECT_EQ(NeededFor(milliseconds(100)), kFar);
  EXPECT_EQ(NeededFor(std::chrono::hours(1)), kFar);
}

TEST(WindowClass, APlaceCountsWhatIsUnderWay) {
  // At the largest round trip of each class, and at 40 ms: bytes a second that a place is enough for.
  const auto rate = [](WindowClass of, double seconds) {
    return static_cast<double>(PlaceBytes(of)) / seconds;
  };
  EXPECT_GT(rate(kMiddle, 0.015), 300e6);
  EXPECT_GT(rate(kFar, 0.040), 400e6);
  EXPECT_GT(rate(kFar, 0.100), 150e6);
}

TEST(WindowPlaces, AreAsManyAsTheirMemoryAllows) {
  WindowPlaces places(2 * kFarBytes);
  EXPECT_EQ(places.Take(1, kFar), kFar);
  EXPECT_EQ(places.Take(2, kNear), kNear) << "takes nothing";
  EXPECT_EQ(places.Take(3, kFar), kFar);
  EXPECT_EQ(places.free_bytes(), 0);
  EXPECT_EQ(places.Take(4, kFar), kNear);
  EXPECT_EQ(places.Take(5, kMiddle), kNear);
  places.Return(2);
  places.Return(4);
  EXPECT_EQ(places.free_bytes(), 0) << "near ones have nothing to give back";
  places.Return(1);
  places.Return(1);
  EXPECT_EQ(places.free_bytes(), kFarBytes);
  EXPECT_EQ(places.Take(6, kFar), kFar);
}

TEST(WindowPlaces, TheNextNarrowerIsBetterThanNone) {
  WindowPlaces places(kFarBytes + 2 * kMiddleBytes);
  EXPECT_EQ(places.Take(1, kFar), kFar);
  EXPECT_EQ(places.Take(2, kFar), kMiddle);
  EXPECT_EQ(places.Take(3, kMiddle), kMiddle);
  EXPECT_EQ(places.Take(4, kFar), kNear);
  for (uint64_t id = 1; id <= 4; ++id) places.Return(id);
  EXPECT_EQ(places.free_bytes(), kFarBytes + 2 * kMiddleBytes);
}

TEST(WindowPlaces, WithoutMemoryAllAreNear) {
  WindowPlaces none(0);
  EXPECT_EQ(none.Take(1, kFar), kNear);
  EXPECT_EQ(none.Take(2, kMiddle), kNear);
}

}  // namespace
}  // namespace tilewire::rpc

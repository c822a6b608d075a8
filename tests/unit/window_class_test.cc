// Which windows a connection gets: by its round trip, and by what is left of their memory.
#include "server/rpc/listener/window_class.h"

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int64_t kLeast = kLeastWideBytes, kMost = kMostWideBytes;

TEST(WindowNeeded, FollowsTheRoundTrip) {
  EXPECT_EQ(WindowNeeded(microseconds(0)), 0);
  EXPECT_EQ(WindowNeeded(microseconds(99)), 0);
  EXPECT_EQ(WindowNeeded(microseconds(100)), kLeast) << "half the rate of a connection is lost from here on";
  EXPECT_EQ(WindowNeeded(microseconds(210)), kLeast) << "enough, so no more: all of it may have to be read";
  EXPECT_EQ(WindowNeeded(milliseconds(1)), 5 * kLeast);
  EXPECT_EQ(WindowNeeded(milliseconds(10)), 46 * kLeast);
  EXPECT_EQ(WindowNeeded(milliseconds(100)), kMost);
  EXPECT_EQ(WindowNeeded(std::chrono::hours(1)), kMost);
}

TEST(WindowNeeded, CarriesTheRateUntilItIsTheWidest) {
  for (int ms = 1; WindowNeeded(milliseconds(ms)) < kMost; ++ms) {
    const int64_t window = WindowNeeded(milliseconds(ms));
    EXPECT_GE(static_cast<double>(window) / (ms * 1e-3), kWideRate) << ms << " ms";
    EXPECT_GE(window, WindowNeeded(milliseconds(ms - 1)));
    EXPECT_EQ(window % kLeast, 0);
  }
}

TEST(ClassOf, FollowsTheWindow) {
  EXPECT_EQ(ClassOf(0), WindowClass::kNear);
  EXPECT_EQ(ClassOf(kLeast), WindowClass::kMiddle);
  EXPECT_EQ(ClassOf(WindowNeeded(milliseconds(5))), WindowClass::kMiddle);
  EXPECT_EQ(ClassOf(WindowNeeded(milliseconds(10))), WindowClass::kFar);
  EXPECT_EQ(ClassOf(kSealedWideBytes), WindowClass::kFar);
  EXPECT_EQ(ClassOf(kMost), WindowClass::kFar);
}

TEST(WindowPlaces, AreAsManyAsTheirMemoryAllows) {
  WindowPlaces places(2 * PlaceBytes(kLeast));
  EXPECT_EQ(places.Take(1, kLeast), kLeast);
  EXPECT_EQ(places.Take(2, 0), 0) << "takes nothing";
  EXPECT_EQ(places.Take(3, kLeast), kLeast);
  EXPECT_EQ(places.free_bytes(), 0);
  EXPECT_EQ(places.Take(4, kLeast), 0);
  EXPECT_EQ(places.Take(5, kMost), 0);
  places.Return(2);
  places.Return(4);
  EXPECT_EQ(places.free_bytes(), 0) << "near ones have nothing to give back";
  places.Return(1);
  places.Return(1);
  EXPECT_EQ(places.free_bytes(), PlaceBytes(kLeast));
  EXPECT_EQ(places.Take(6, kLeast), kLeast);
}

TEST(WindowPlaces, LeaveSomethingToThoseWhoComeLater) {
  WindowPlaces places(4 * PlaceBytes(kMost));
  EXPECT_EQ(places.Take(1, kMost), kMost);
  EXPECT_EQ(places.Take(2, kMost), kMost / 2) << "three such places are no plenty";
  int64_t last = kMost / 2;
  int given = 2;
  for (uint64_t id = 3; const int64_t window = places.Take(id, kMost); ++id, ++given) {
    EXPECT_LE(window, last);
    EXPECT_GE(window, kLeastFarBytes);
    last = window;
  }
  EXPECT_GE(given, 3 * 4) << "three times as many as with the widest window for each";
  EXPECT_EQ(last, kLeastFarBytes);
  EXPECT_LT(places.free_bytes(), PlaceBytes(kLeastFarBytes));
  EXPECT_EQ(places.Take(1000, kLeast), kLeast) << "who needs less may find what is left";
  places.Return(1000);
  for (uint64_t id = 1; id <= static_cast<uint64_t>(given); ++id) places.Return(id);
  EXPECT_EQ(places.free_bytes(), 4 * PlaceBytes(kMost));
}

TEST(WindowPlaces, AreOfOneSizeWhereThatIsTold) {
  WindowPlaces places(2 * PlaceBytes(kSealedWideBytes) + PlaceBytes(kLeast));
  EXPECT_EQ(places.Take(1, kSealedWideBytes, kSealedWideBytes), kSealedWideBytes);
  EXPECT_EQ(places.Take(2, kSealedWideBytes, kSealedWideBytes), kSealedWideBytes);
  EXPECT_EQ(places.Take(3, kSealedWideBytes, kSealedWideBytes), 0);
}

TEST(WindowPlaces, WithoutMemoryAllAreNear) {
  WindowPlaces none(0);
  EXPECT_EQ(none.Take(1, kMost), 0);
  EXPECT_EQ(none.Take(2, kLeast), 0);
}

}  // namespace
}  // namespace tilewire::rpc

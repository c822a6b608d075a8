// The guarded copy: bytes that are there, bytes that are gone, and everybody else's faults.
#include "server/engine/device/cpu/guarded_copy.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>
#include <vector>

#include "tests/unit/shared_file.h"

namespace tilewire::engine {
namespace {

using tilewire::testing::SharedFile;

constexpr size_t kBytes = 1 << 20;

std::vector<std::byte> Pattern(uint8_t seed) {
  std::vector<std::byte> bytes(kBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 4096 + seed);
  return bytes;
}

TEST(GuardedCopy, CopiesWhatIsThere) {
  SharedFile file(kBytes);
  const auto bytes = Pattern(1);
  std::vector<std::byte> back(kBytes);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4095}, size_t{4097}, kBytes}) {
    ASSERT_TRUE(GuardedCopy(file.data(), bytes.data(), count));
    ASSERT_TRUE(GuardedCopy(back.data(), file.data(), count));
    EXPECT_TRUE(std::equal(back.begin(), back.begin() + static_cast<ptrdiff_t>(count), bytes.begin()));
  }
}

TEST(GuardedCopy, ComesBackFromWhatAnotherProcessCutOff) {
  SharedFile file(kBytes);
  const auto bytes = Pattern(2);
  file.Write(0, bytes.data(), kBytes);
  std::vector<std::byte> back(kBytes);
  for (const size_t left : {size_t{512 << 10}, size_t{4096}, size_t{0}}) {
    file.ResizeElsewhere(left);
    EXPECT_FALSE(GuardedCopy(back.data(), file.data(), kBytes)) << left;
    EXPECT_FALSE(GuardedCopy(file.data(), bytes.data(), kBytes)) << left;
    ASSERT_TRUE(GuardedCopy(back.data(), file.data(), left)) << left;
    EXPECT_TRUE(std::equal(back.begin(), back.begin() + static_cast<ptrdiff_t>(left), bytes.begin()));
  }
  file.ResizeElsewhere(kBytes);
  EXPECT_TRUE(GuardedCopy(file.data(), bytes.data(), kBytes)) << "what is there again can be used again";
}

TEST(GuardedCopy, ThreadsHaveFaultsOfTheirOwn) {
  SharedFile whole(kBytes), cut(kBytes);
  const auto bytes = Pattern(3);
  whole.Write(0, bytes.data(), kBytes);
  cut.Resize(4096);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      std::vector<std::byte> back(kBytes);
      for (int repeat = 0; repeat < 50; ++repeat) {
        const bool good = (i + repeat) % 2 == 0;
        EXPECT_EQ(GuardedCopy(back.data(), good ? whole.data() : cut.data(), kBytes), good);
        if (good) {
          EXPECT_TRUE(back == bytes);
        }
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(GuardedCopyDeathTest, OtherFaultsEndTheProcessAsEver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SharedFile file(kBytes);
  file.Unlink();  // who dies leaves nothing
  std::byte one[1] = {};
  ASSERT_TRUE(GuardedCopy(one, file.data(), 1)) << "the handler is there";
  file.Resize(0);
  EXPECT_DEATH(
      {
        GuardedCopy(one, file.data(), 1);
        *const_cast<volatile std::byte*>(file.data()) = one[0];  // not by the guarded copy
      },
      "");
  EXPECT_DEATH(
      {
        GuardedCopy(one, file.data(), 1);
        raise(SIGBUS);  // sent by somebody
      },
      "");
}

}  // namespace
}  // namespace tilewire::engine

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

constexpr size_t kFileBytes = 1 << 20;

std::vector<std::byte> Pattern(uint8_t seed) {
  std::vector<std::byte> bytes(kFileBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 4096 + seed);
  return bytes;
}

TEST(GuardedCopy, CopiesWhatIsThere) {
  SharedFile file(kFileBytes);
  const auto bytes = Pattern(1);
  std::vector<std::byte> back(kFileBytes);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4095}, size_t{4097}, kFileBytes}) {
    ASSERT_TRUE(GuardedCopy(file.data(), bytes.data(), count));
    ASSERT_TRUE(GuardedCopy(back.data(), file.data(), count));
    EXPECT_TRUE(std::equal(back.begin(), back.begin() + static_cast<ptrdiff_t>(count), bytes.begin()));
  }
}

TEST(GuardedCopy, ComesBackFromWhatAnotherProcessCutOff) {
  SharedFile file(kFileBytes);
  const auto bytes = Pattern(2);
  file.Write(0, bytes.data(), kFileBytes);
  std::vector<std::byte> back(kFileBytes);
  for (const size_t left : {size_t{512 << 10}, size_t{4096}, size_t{0}}) {
    file.ResizeElsewhere(left);
    EXPECT_FALSE(GuardedCopy(back.data(), file.data(), kFileBytes)) << left;
    EXPECT_FALSE(GuardedCopy(file.data(), bytes.data(), kFileBytes)) << left;
    ASSERT_TRUE(GuardedCopy(back.data(), file.data(), left)) << left;
    EXPECT_TRUE(std::equal(back.begin(), back.begin() + static_cast<ptrdiff_t>(left), bytes.begin()));
  }
  file.ResizeElsewhere(kFileBytes);
  EXPECT_TRUE(GuardedCopy(file.data(), bytes.data(), kFileBytes)) << "what is there again can be used again";
}

TEST(GuardedCopy, ThreadsHaveFaultsOfTheirOwn) {
  SharedFile whole(kFileBytes), cut(kFileBytes);
  const auto bytes = Pattern(3);
  whole.Write(0, bytes.data(), kFileBytes);
  cut.Resize(4096);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      std::vector<std::byte> back(kFileBytes);
      for (int repeat = 0; repeat < 50; ++repeat) {
        const bool good = (i + repeat) % 2 == 0;
        EXPECT_EQ(GuardedCopy(back.data(), good ? whole.data() : cut.data(), kFileBytes), good);
        if (good) {
          EXPECT_TRUE(back == bytes);
        }
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(GuardedCopyDeathTest, OtherFaultsEndTheProcessAsEver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SharedFile file(kFileBytes);
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

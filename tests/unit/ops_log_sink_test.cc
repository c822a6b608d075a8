// Lines on their way to a reader who is fast, slow, dead or not there.
#include "server/ops/log_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/waiting.h"

namespace tilewire::ops {
namespace {

using ::tilewire::testing::Eventually;

class LogSinkTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  /// A pipe of which one read takes what one write put into it.
  void UsePackets() {
    CloseReader();
    close(ends_[1]);
    ASSERT_EQ(pipe2(ends_.data(), O_CLOEXEC | O_DIRECT), 0);
  }
  void TearDown() override {
    CloseReader();
    close(ends_[1]);
  }
  void Make(size_t most_bytes, std::chrono::milliseconds gather = {}) {
    sink_ = std::make_shared<LogSink>(
        ends_[1], most_bytes, [](uint64_t lines) { return "dropped " + std::to_string(lines) + "\n"; },
        gather);
    logger_ = std::make_unique<spdlog::logger>("test", sink_);
    logger_->set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc, "\n"));
  }
  void Log(const std::string& line) { logger_->info(line); }
  bool IsThere() {
    pollfd reader{.fd = ends_[0], .events = POLLIN, .revents = 0};
    return poll(&reader, 1, 0) == 1;
  }
  /// What is there, which is waited for.
  std::string ReadOnce() {
    std::array<char, 4096> buffer{};
    const ssize_t n = read(ends_[0], buffer.data(), buffer.size());
    return std::string(buffer.data(), static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  /// Until nobody holds the other end.
  std::string ReadAll() {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n; (n = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<size_t>(n));
    return text;
  }
  /// Drops the sink, and with it the end that is written to.
  void EndSink() {
    logger_.reset();
    sink_.reset();
    close(ends_[1]);
    ends_[1] = -1;
  }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }

  std::array<int, 2> ends_{-1, -1};
  std::shared_ptr<LogSink> sink_;
  std::unique_ptr<spdlog::logger> logger_;
};

TEST_F(LogSinkTest, WritesEveryLineInOrder) {
  Make(1 << 20);
  std::string all, got;
  std::thread reader([&] { got = ReadAll(); });
  for (int i = 0; i < 3000; ++i) {
    const std::string line = "line " + std::to_string(i) + std::string(static_cast<size_t>(i % 50), '.');
    Log(line);
    all += line + "\n";
    if (i % 500 == 0) sink_->flush();
  }
  sink_->flush();
  EndSink();
  reader.join();
  EXPECT_EQ(got, all);
}

TEST_F(LogSinkTest, LinesLongerThanAPipeArriveWhole) {
  Make(1 << 20);
  const std::string longest(300'000, 'x');
  std::string got;
  std::thread reader([&] { got = ReadAll(); });
  Log(longest);
  Log("next");
  EndSink();
  reader.join();
  EXPECT_TRUE(got == longest + "\nnext\n");
}

/// Put together in the same room again and again.
TEST_F(LogSinkTest, AFileGetsEveryLineInOrder) {
  FILE* const file = tmpfile();
  ASSERT_NE(file, nullptr);
  std::string all;
  {
    LogSink sink(
        fileno(file), 8 << 20, [](uint64_t) { return std::string("dropped\n"); },
        std::chrono::milliseconds(10));
    for (int i = 0; i < 60'000; ++i) {
      const std::string line =
          "line " + std::to_string(i) + std::string(static_cast<size_t>(i % 50), '.') + "\n";
      sink.Append(line);
      all += line;
      if (i % 20'000 == 0) sink.flush();
    }
  }
  std::string got(all.size() + 1, '\0');
  got.resize(static_cast<size_t>(pread(fileno(file), got.data(), got.size(), 0)));
  EXPECT_TRUE(got == all) << got.size() << " of " << all.size();
  fclose(file);
}

TEST_F(LogSinkTest, NobodyWaitsForAPipeThatNobodyReads) {
  Make(10'000);
  constexpr int kLines = 20'000;  // a pipe holds 64 KiB
  for (int i = 0; i < kLines; ++i) Log("0123456789");
  EXPECT_GT(sink_->dropped(), 0u);
  // Now somebody does: what was kept, and how much was not.
  std::string got;
  std::thread reader([&] { got = ReadAll(); });
  int again = 0;
  ASSERT_TRUE(Eventually([&] {
    sink_->flush();
    const uint64_t before = sink_->dropped();
    ++again;
    Log("again");
    return sink_->dropped() == before;
  }));
  const uint64_t dropped = sink_->dropped();
  EndSink();
  reader.join();
  const auto lines = static_cast<uint64_t>(std::count(got.begin(), got.end(), '\n'));
  uint64_t told = 0, tellings = 0;
  for (size_t at = 0; (at = got.find("dropped ", at)) != got.npos; ++at, ++tellings)
    told += std::stoull(got.substr(at + 8));
  EXPECT_EQ(told, dropped);
  EXPECT_EQ(lines - tellings + dropped, kLines + static_cast<uint64_t>(again))
      << "every line is there or counted";
  EXPECT_NE(got.find("again\n"), got.npos);
}

TEST_F(LogSinkTest, EndsThoughNobodyReads) {
  Make(1 << 20);
  for (int i = 0; i < 20'000; ++i) Log("0123456789");
  EndSink();  // or the test hangs
}

/// No file of this process may grow beyond so many bytes, while it lives.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit most{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &most);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(LogSinkTest, WhereADiskIsFullOnlyLinesThatAreNotThereCountAsDropped) {
  const std::unique_ptr<FILE, decltype(&fclose)> file(tmpfile(), &fclose);
  ASSERT_EQ(dup2(fileno(file.get()), ends_[1]), ends_[1]);
  Make(1 << 20, std::chrono::hours(1));
  const std::string line(30, 'x');
  {
    const FullDisk full(100);
    for (int i = 0; i < 10; ++i) Log(line);
    EXPECT_TRUE(Eventually([&] { return sink_->flush(), sink_->dropped() > 0; }));
    Log("no room for it");
    EXPECT_TRUE(Eventually([&] { return sink_->flush(), sink_->dropped() > 7; }));
    EXPECT_EQ(sink_->dropped(), 8u);
  }
  Log("there is room again");
  EndSink();
  std::array<char, 1000> buffer{};
  const ssize_t count = pread(fileno(file.get()), buffer.data(), buffer.size(), 0);
  std::string whole;
  for (int i = 0; i < 3; ++i) whole += line + "\n";
  EXPECT_EQ(std::string(buffer.data(), static_cast<size_t>(count)), whole + "xxxxxxx\nthere is room again\n");
}

TEST_F(LogSinkTest, GatheredLinesAreOneWrite) {
  UsePackets();
  Make(1 << 20, std::chrono::hours(1));
  for (int round = 0; round < 100; ++round) {
    std::string all;
    for (int i = 0; i < 50; ++i) {
      const std::string line = std::to_string(round) + " " + std::to_string(i);
      Log(line);
      all += line + "\n";
    }
    do sink_->flush();  // which gives up after a second
    while (!IsThere());
    EXPECT_EQ(ReadOnce(), all);
  }
}

TEST_F(LogSinkTest, GatheredLinesComeByThemselves) {
  Make(1 << 20, std::chrono::milliseconds(1));
  Log("a line");
  EXPECT_EQ(ReadOnce(), "a line\n");
}

TEST_F(LogSinkTest, GatheredLinesComeAtOnceWhereRoomGetsScarce) {
  Make(100, std::chrono::hours(1));
  Log(std::string(30, 'x'));
  Log(std::string(30, 'y'));
  EXPECT_EQ(ReadOnce(), std::string(30, 'x') + "\n" + std::string(30, 'y') + "\n");
}

TEST_F(LogSinkTest, GatheredLinesAreWrittenAtTheEnd) {
  Make(1 << 20, std::chrono::hours(1));
  Log("the last");
  EndSink();
  EXPECT_EQ(ReadAll(), "the last\n");
}

TEST_F(LogSinkTest, AReaderThatIsGoneIsNoError) {
  signal(SIGPIPE, SIG_IGN);
  Make(1 << 20);
  CloseReader();
  Log("to nobody");
  EXPECT_TRUE(Eventually([&] {
    sink_->flush();  // which gives up after a second
    return sink_->dropped() == 1;
  }));
}

}  // namespace
}  // namespace tilewire::ops

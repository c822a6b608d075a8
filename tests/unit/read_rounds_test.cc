// Whoever sends without a pause is read in rounds that end.
#include "server/rpc/listener/read_rounds.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <vector>

#include "server/rpc/listener/file_descriptor.h"

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

namespace tilewire::rpc {
namespace {

class ReadRounds : public ::testing::Test {
 protected:
  void SetUp() override {
    const FileDescriptor listening(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in here{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t bytes = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    ASSERT_EQ(bind(listening.get(), address, bytes), 0);
    ASSERT_EQ(listen(listening.get(), 1), 0);
    ASSERT_EQ(getsockname(listening.get(), address, &bytes), 0);
    sends_ = FileDescriptor(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(sends_.get(), address, bytes), 0);
    reads_ = FileDescriptor(accept(listening.get(), nullptr, nullptr));
    ASSERT_TRUE(reads_);
    const int on = 1;
    ASSERT_EQ(setsockopt(reads_.get(), SOL_TCP, TCP_INQ, &on, sizeof on), 0);
    for (const int fd : {sends_.get(), reads_.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  void Fill() {
    while (send(sends_.get(), piece_.data(), piece_.size(), MSG_NOSIGNAL) > 0) {
    }
  }
  /// What is said of the queue after a piece was read; none: it was empty.
  std::optional<int> Read() {
    std::vector<char> into(64 << 10);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec at{.iov_base = into.data(), .iov_len = into.size()};
    msghdr message{};
    message.msg_iov = &at, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    const ssize_t read = recvmsg(reads_.get(), &message, 0);
    if (read <= 0) return std::nullopt;
    read_ += read;
    const cmsghdr* const said = CMSG_FIRSTHDR(&message);
    EXPECT_NE(said, nullptr);
    if (said == nullptr) return std::nullopt;
    int queued = 0;
    std::memcpy(&queued, CMSG_DATA(said), sizeof queued);
    return queued;
  }
  /// How much was read until the queue is said to be empty; none: 64 MiB and it was not.
  std::optional<int64_t> Round() {
    for (read_ = 0; read_ < 64 << 20;) {
      Fill();
      if (Read() == 0) return read_;
    }
    return std::nullopt;
  }
  int Holds() const {
    int holds = 0;
    socklen_t bytes = sizeof holds;
    EXPECT_EQ(getsockopt(reads_.get(), SOL_SOCKET, SO_RCVBUF, &holds, &bytes), 0);
    return holds;
  }
  int Queued() const {
    int queued = 0;
    EXPECT_EQ(ioctl(reads_.get(), FIONREAD, &queued), 0);
    return queued;
  }

  const std::vector<char> piece_ = std::vector<char>(64 << 10);
  FileDescriptor sends_, reads_;
  int64_t read_ = 0;
};

TEST_F(ReadRounds, EndWhereMoreCameThanASocketHolds) {
  BeginRounds(reads_.get());
  for (int i = 0; i < 3; ++i) {
    const auto round = Round();
    ASSERT_TRUE(round) << i;
    EXPECT_GT(*round, 2 * int64_t{Holds()}) << i;
    EXPECT_GT(Queued(), 0) << "there is more";
  }
}

TEST_F(ReadRounds, EndWhereItIsEmpty) {
  BeginRounds(reads_.get());
  for (int i = 0; i < 300; ++i) {  // more than a round
    ASSERT_EQ(send(sends_.get(), piece_.data(), piece_.size(), MSG_NOSIGNAL), std::ssize(piece_));
    for (auto queued = Read(); queued; queued = Read())
      if (*queued == 0) {
        EXPECT_EQ(Queued(), 0) << i;
      }
  }
}

TEST_F(ReadRounds, OfOthersAreLeftAlone) {
  BeginRounds(reads_.get());
  EXPECT_EQ(SayQueued(reads_.get(), 1 << 20, 5), 5) << "in the middle of a round";
  ASSERT_EQ(dup2(sends_.get(), reads_.get()), reads_.get()) << "another one has its descriptor";
  EXPECT_EQ(SayQueued(reads_.get(), 1 << 30, 5), 5);
  BeginRounds(reads_.get());
  EXPECT_EQ(SayQueued(reads_.get(), 1 << 30, 5), 0);
}

}  // namespace
}  // namespace tilewire::rpc

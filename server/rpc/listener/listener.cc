#include "server/rpc/listener/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "server/rpc/listener/read_rounds.h"

namespace tilewire::rpc {
namespace {

// What epoll tells of: connections have their ids, which count from 1.
constexpr uint64_t kStop = ~uint64_t{0}, kFirstSocket = uint64_t{1} << 63;

/// And of them: that they end, or that their peers send nothing more.
constexpr uint32_t kEnds = EPOLLET | EPOLLRDHUP;

constexpr int kAcceptsInARow = 64;  // then ends of connections are looked at
constexpr std::chrono::seconds kTellEvery{10};
constexpr int kPauseMs = 50;
// Peers that vanished without a word: without data they are asked after a minute, with unacknowledged data
// they are given up after as long as gRPC waits for its pings.
constexpr int kKeepAliveIdleSeconds = 60, kKeepAliveEverySeconds = 10, kKeepAliveProbes = 3;
constexpr int kUserTimeoutMs = 20'000;

Status Errno(const std::string& what) {
  return Status(Code::kUnavailable, "CANNOT_LISTEN", what + ": " + std::strerror(errno));
}

FileDescriptor OpenSpare() {
  return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void SetOption(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);  // a connection is as good without, only slower to end
}

void PrepareTcp(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveEverySeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

}  // namespace

Listener::Listener(const ConnectionLimits& limits, uint64_t open_files, ConnectionObserver* observer,
                   MemoryWatch::Read memory)
    : open_files_(open_files),
      acknowledge_within_(limits.acknowledge_within),
      observer_(observer),
      connections_(limits, observer),
      memory_(limits.memory_bytes, std::move(memory)) {}

Listener::~Listener() {
  Stop();
}

Result<std::unique_ptr<Listener>> Listener::Open(const std::vector<std::string>& addresses,
                                                 const ConnectionLimits& limits, ConnectionObserver* observer,
                                                 MemoryWatch::Read memory) {
  const uint64_t open_files = OpenFilesLimit();
  std::unique_ptr<Listener> listener(
      new Listener(WithDefaults(limits, open_files), open_files, observer, std::move(memory)));
  for (const std::string& address : addresses) {
    TILEWIRE_ASSIGN_OR_RETURN(ListeningSockets listening, ListenOn(address));
    listener->addresses_.push_back(listening.address());
    if (!listening.left_out().empty())
      observer->OnWarning("listening on " + listening.address() + ", but not on " + listening.left_out());
    for (const FileDescriptor& socket : listening.sockets()) listener->sockets_.push_back(socket.get());
    listener->listening_.push_back(std::move(listening));
  }
  listener->epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  listener->stop_ = FileDescriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  listener->spare_ = OpenSpare();
  if (!listener->epoll_ || !listener->stop_ || !listener->spare_) return Fail(Errno("preparing to listen"));
  TILEWIRE_RETURN_IF_ERROR(listener->Watch(listener->stop_.get(), EPOLLIN, kStop));
  for (size_t i = 0; i < listener->sockets_.size(); ++i)
    TILEWIRE_RETURN_IF_ERROR(listener->Watch(listener->sockets_[i], EPOLLIN, kFirstSocket + i));
  return listener;
}

Status Listener::Watch(int fd, uint32_t events, uint64_t key) {
  epoll_event event{.events = events, .data = {.u64 = key}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? Status() : Errno("watching a socket");
}

void Listener::Start(HandOver hand_over, WindowOptions windows, LookAfter look_after) {
  look_after_ = std::move(look_after);
  hand_overs_ = std::make_unique<HandOvers>(std::move(hand_over));
  arrivals_ = std::make_unique<Arrivals>(
      std::move(windows), acknowledge_within_,
      [this](FileDescriptor connection, Entrance by) { hand_overs_->Give(std::move(connection), by); },
      [this](Connections::Id id, Clock::duration round_trip, int64_t window) {
        connections_.SetDistance(id, round_trip, window);
      },
      observer_);
  thread_ = std::thread([this] { Run(); });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    hand_overs_->Stop();  // first: who keeps it is ended by the thread that looks after all
    const uint64_t one = 1;
    while (write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
    arrivals_->Clear();
  }
  listening_.clear();
  sockets_.clear();
}

Result<std::vector<FileDescriptor>> Listener::DialAll() {
  std::vector<FileDescriptor> dials;
  for (const int socket : sockets_) {
    dials.push_back(own_dials_.Dial(socket));
    if (!dials.back()) return Fail(Errno("dialling the server itself"));
    BeginRounds(dials.back().get());
  }
  return dials;
}

void Listener::Run() {
  pthread_setname_np(pthread_self(), "tw-accept");
  std::array<epoll_event, 256> events{};
  TimePoint looked = Clock::now();
  for (;;) {
    LookAfterAll();
    for (const Connections::Id late : arrivals_->GiveUp(looked, Clock::now())) WatchEnd(late);
    GiveBack();
    // Nobody is there to be looked after: asleep.
    const bool asleep = connections_.empty() && trims_left_ == 0;
    const int wait_ms = asleep ? -1 : WatchAgainMs();
    // What is there already may have come while others were seen to, and more of that than is taken at once.
    TimePoint after = looked;
    int count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    if (count == 0) {
      count = epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms);
      after = Clock::now();
    }
    if (count < static_cast<int>(events.size())) looked = Clock::now();
    if (count < 0 && errno != EINTR) Pause();
    if (count > 0) LookSoon();
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[static_cast<size_t>(i)].data.u64;
      if (key == kStop) return;
      if (key >= kFirstSocket) {
        AcceptFrom(sockets_[key - kFirstSocket]);
      } else {
        Told(key, events[static_cast<size_t>(i)].events, after);
      }
    }
  }
}

void Listener::Told(Connections::Id id, uint32_t events, TimePoint after) {
  if ((events & (EPOLLHUP | EPOLLERR)) == 0 && (events & EPOLLRDHUP) != 0 && !arrivals_->waiting(id)) {
    connections_.PeerClosed(id);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0 || !arrivals_->waiting(id)) {
    arrivals_->Ended(id);
    connections_.Remove(id);
  } else if (arrivals_->Came(id, after)) {
    WatchEnd(id);
  }
}

void Listener::WatchEnd(Connections::Id id) {
  epoll_event event{.events = kEnds, .data = {.u64 = id}};
  connections_.With(id, [&](int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event); });
}

void Listener::AcceptFrom(int socket) {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    FileDescriptor connection(
        accept4(socket, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      Take(std::move(connection), from);
      continue;
    }
    switch (errno) {
      case EAGAIN:
        return;
      case EMFILE:
      case ENFILE:
        if (!AcceptAndDrop(socket)) return;
        break;
      case ENOBUFS:
      case ENOMEM:
        Pause();
        return;
      default:  // of that one connection, which is gone
        break;
    }
  }
}

std::optional<Refusal> Listener::Judge(int fd, const Peer& peer) {
  const auto refusal = connections_.Refuse(peer);
  if (refusal) return refusal;
  // Descriptors are given out lowest first, so a number says how many there are.
  if (static_cast<uint64_t>(fd) + DescriptorReserve(open_files_) / 2 >= open_files_)
    return Refusal::kDescriptors;
  return std::nullopt;
}

void Listener::Take(FileDescriptor connection, const sockaddr_storage& from) {
  Peer peer = PeerOf(connection.get(), from);
  const bool own = peer.is_probe = own_dials_.Take(peer);
  if (own) peer.group = "this server";  // what others of its address do is nothing to it
  // Told before it is closed: who sees the end finds it counted.
  if (const auto refusal = Judge(connection.get(), peer); refusal && !own) return Refused(*refusal);
  if (from.ss_family != AF_UNIX) PrepareTcp(connection.get());
  BeginRounds(connection.get());
  FileDescriptor second(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!second) return Refused(Refusal::kDescriptors);
  const int watched = second.get();
  const Connections::Id id = connections_.Add(std::move(peer), std::move(second));
  // Told once, when both directions have ended, which gRPC sees to before it closes; where a distance is to
  // be measured, before that of what comes in.
  const bool measured = arrivals_->on() && !own && from.ss_family != AF_UNIX;
  if (!Watch(watched, measured ? kEnds | EPOLLIN : kEnds, id).ok()) {
    connections_.Remove(id);
    return Refused(Refusal::kDescriptors);
  }
  if (!measured) return arrivals_->HandNear(id, std::move(connection), from.ss_family != AF_UNIX && !own);
  if (!arrivals_->Begin(id, std::move(connection))) WatchEnd(id);
}

bool Listener::AcceptAndDrop(int socket) {
  spare_.Reset();
  FileDescriptor dropped(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC));
  const bool any = static_cast<bool>(dropped);
  if (any) Refused(Refusal::kDescriptors);
  dropped.Reset();
  spare_ = OpenSpare();
  if (!spare_) Pause();  // somebody else was faster
  return any;
}

void Listener::Refused(Refusal why) {
  observer_->OnConnectionRefused(why);
  ++refused_;
  const TimePoint now = Clock::now();
  if (now < tell_next_) return;
  tell_next_ = now + kTellEvery;
  observer_->OnWarning(
      "connections refused, now " + std::to_string(refused_ - std::exchange(refused_told_, refused_)) +
      ", because of --max-connections (full), --max-connections-per-peer (peer) or open files "
      "(descriptors): " +
      std::string(kRefusalNames[static_cast<size_t>(why)]));
}

void Listener::Pause() {
  pollfd until_stop{.fd = stop_.get(), .events = POLLIN, .revents = 0};
  poll(&until_stop, 1, kPauseMs);
}

}  // namespace tilewire::rpc

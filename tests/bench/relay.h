// A TCP relay that makes a distance on one machine: every byte is held for a while, each way, and no more
// pass in a second than the line would carry.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::bench {

/// When a relay acknowledges that the server has accepted.
enum class Handshake : uint8_t {
  kAtOnce,
  kWithFirstBytes,  ///< to the server's TCP, the relay is as far as the client's first bytes took
};

/// One thread relays all connections. Protocols that answer each other see a round trip of twice `one_way`;
/// TCP itself does not: its connections end at the relay.
class Relay {
 public:
  /// Between clients of address() and "host:port" of IPv4. `bytes_per_second`: of each connection and
  /// direction; 0: as many as pass. Throws std::runtime_error where it cannot listen.
  Relay(const std::string& target, std::chrono::microseconds one_way, int64_t bytes_per_second = 0,
        Handshake handshake = Handshake::kAtOnce);
  /// Cuts what there is.
  ~Relay();
  Relay(const Relay&) = delete;

  const std::string& address() const { return address_; }
  int connections() const { return connections_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Piece {
    Clock::time_point due;
    std::vector<char> bytes;
  };
  /// One direction of a connection.
  struct Pipe {
    int from = -1, to = -1;
    std::deque<Piece> held = {};
    size_t held_bytes = 0, sent_of_first = 0;
    Clock::time_point line_free = {};
    bool ended = false, told = false;  ///< nothing more comes, and the other end knows
  };
  struct Connection {
    rpc::FileDescriptor client, server;
    Pipe up, down;
  };

  void Run();
  void Accept();
  void Read(Pipe* pipe);
  /// Where one direction breaks, what the other holds still gets there.
  static void Write(Pipe* pipe);

  const std::string target_;
  const std::chrono::microseconds one_way_;
  const int64_t bytes_per_second_;
  const Handshake handshake_;
  std::string address_;
  rpc::FileDescriptor listener_, stop_;
  std::atomic<int> connections_{0};
  std::list<Connection> all_;
  std::vector<char> buffer_;
  std::thread thread_;
};

}  // namespace tilewire::bench

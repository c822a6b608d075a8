// A client that says what a script says, in HTTP/2 as far as that is in HTTP/2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/listener/file_descriptor.h"
#include "tests/fuzz/connection/http2.h"
#include "tests/fuzz/connection/records.h"

namespace tilewire::fuzz {

/// One connection.
class Client {
 public:
  /// `shared_memory` is what placeholders 'Z' stand for.
  Client(rpc::FileDescriptor connected, std::string shared_memory);

  /// Says all of it, then ends the connection as it says. `answered`: not before each call is answered, or
  /// the server has ended the connection. A sealed script is answered wherever it waits.
  /// `before_end` comes between.
  void Run(const Script& script, bool answered, const std::function<void()>& before_end);
  /// The request id of all calls.
  void Name(const std::string& name) { name_ = name; }

 private:
  void Do(const Record& record);
  void Begin(const Record& record);
  /// `stream`: 0: none.
  void SendMessage(uint32_t stream, uint8_t flags, const std::string& message);
  /// DATA, once the server's windows have room for it, unless they get none.
  void SendData(uint32_t stream, uint8_t flags, std::string_view payload);
  void SendFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  /// Before what they changed is used: until then the server goes by what was before.
  void AcknowledgeSettings();
  void End(const Record& record);
  /// The open call of that number, counted from the newest; 0: there is none.
  uint32_t Call(uint8_t number) const;
  /// Ids that the server told in place of placeholders: 33 times 'A' is the first one, 'B' the second.
  std::string Filled(std::string message) const;

  void Send(std::string_view bytes);
  /// Takes what is there. False: the connection has ended.
  bool Receive();
  /// What the server said, frame by frame.
  void Read();
  void Look(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  void KeepIds(std::string_view payload);
  /// Waits for more from the server, which must come.
  void Await();
  /// Waits until the server has taken all that was sent.
  void Acknowledged();
  /// Waits until `done` or, unless the script is sealed, until the server seems to have no more to say.
  template <typename Done>
  void Settle(const Done& done);
  void Finish(uint8_t flags);

  rpc::FileDescriptor fd_;
  const std::string shared_memory_;
  bool ended_ = false;
  bool framed_ = true;  ///< all that was sent were whole frames: the server knows where the next one begins
  uint32_t asked_ = 0;  ///< the stream of the last message
  bool answered_ = false;  ///< something came of it: a message, or the end of its call
  bool sealed_ = false;
  int silences_ = 0;
  uint32_t next_stream_ = 1;
  std::vector<uint32_t> calls_;          ///< those not half-closed
  std::map<uint32_t, int64_t> windows_;  ///< of streams that have not ended, less the initial one
  int64_t initial_window_ = http2::kFirstWindow, window_ = http2::kFirstWindow;
  std::string name_;              ///< empty: none
  std::string metadata_;          ///< of the next call
  std::string received_;          ///< not looked at yet
  std::vector<std::string> ids_;  ///< in the order that they were told
  int settings_sent_ = 0, settings_taken_ = 0, acks_due_ = 0;
  bool sending_ = false;
};

}  // namespace tilewire::fuzz

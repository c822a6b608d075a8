// Reading protobuf fields out of a message that lies in pieces. Private to proto/wire.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/array/status.h"
#include "proto/wire/codec.h"

namespace tilewire::wire {

/// INVALID_ARGUMENT, reason BAD_MESSAGE: "`what` at byte `offset`: `problem`".
Status BadMessage(std::string_view what, uint64_t offset, std::string_view problem);

/// A place in a message that lies in pieces. Copying it is cheap and remembers a place. Checks no bounds:
/// callers stay within TotalBytes. Thread-compatible; the pieces must outlive it.
class Cursor {
 public:
  explicit Cursor(const Pieces& pieces) : pieces_(&pieces) {}

  /// Bytes before this place, counted from the start of the whole message.
  uint64_t position() const { return position_; }

  uint8_t Next() {
    while (at_ == (*pieces_)[piece_].size()) {  // empty pieces occur
      ++piece_;
      at_ = 0;
    }
    ++position_;
    return (*pieces_)[piece_][at_++];
  }

  /// Moves on by `count` bytes and hands every non-empty run of them to `sink(Bytes)`, in order.
  template <typename Sink>
  void Take(uint64_t count, Sink&& sink) {
    position_ += count;
    while (count > 0) {
      const Bytes piece = (*pieces_)[piece_];
      const size_t run = static_cast<size_t>(std::min<uint64_t>(count, piece.size() - at_));
      if (run > 0) sink(piece.subspan(at_, run));
      count -= run;
      at_ += run;
      if (at_ == piece.size()) {
        ++piece_;
        at_ = 0;
      }
    }
  }
  void Skip(uint64_t count) {
    Take(count, [](Bytes) {});
  }

 private:
  const Pieces* pieces_;
  size_t piece_ = 0, at_ = 0;
  uint64_t position_ = 0;
};

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLen = 2, kFixed32 = 5 };

/// One field. For kLen `value` is the length, and the bytes themselves are still to be taken from the cursor.
struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;
  uint64_t begin = 0;  ///< offset of the tag in the whole message

  bool Is(uint32_t wanted_number, WireType wanted_type) const {
    return number == wanted_number && type == wanted_type;
  }
};

/// Reads the fields of one message, which ends at offset `end` of the whole message.
class FieldReader {
 public:
  /// `message` names it in errors.
  FieldReader(Cursor* cursor, uint64_t end, std::string_view message)
      : cursor_(cursor), end_(end), message_(message) {}

  bool done() const { return cursor_->position() == end_; }
  /// Reads tag and value (kLen: tag and length, which is checked against the end of the message).
  Status Next(Field* field);

 private:
  /// At most `max_bytes` of them; bits beyond 64 are dropped, as protobuf does.
  Status Varint(int max_bytes, std::string_view what, uint64_t* value);
  Status Fixed(int bytes, uint64_t* value);

  Cursor* cursor_;
  uint64_t end_;
  std::string_view message_;
};

}  // namespace tilewire::wire

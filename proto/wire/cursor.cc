#include "proto/wire/cursor.h"

namespace tilewire::wire {
namespace {
constexpr int kMaxVarintBytes = 10;
/// Tags and lengths fit 32 bits; protobuf refuses longer spellings of them.
constexpr int kMaxVarint32Bytes = 5;
constexpr uint64_t kMaxFieldNumber = (uint64_t{1} << 29) - 1;
}  // namespace

Status BadMessage(std::string_view what, uint64_t offset, std::string_view problem) {
  std::string message(what);
  message += " at byte " + std::to_string(offset) + ": ";
  message += problem;
  return Status(Status::Detail{.code = Code::kInvalidArgument,
                               .reason = "BAD_MESSAGE",
                               .message = std::move(message),
                               .field = std::string(what)});
}

Status FieldReader::Varint(int max_bytes, std::string_view what, uint64_t* value) {
  const uint64_t begin = cursor_->position();
  uint64_t result = 0;
  for (int i = 0; i < max_bytes; ++i) {
    if (done()) return BadMessage(message_, begin, std::string(what) + " is cut off");
    const uint8_t byte = cursor_->Next();
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      *value = result;
      return Status();
    }
  }
  return BadMessage(message_, begin,
                    std::string(what) + " is longer than " + std::to_string(max_bytes) + " bytes");
}

Status FieldReader::Fixed(int bytes, uint64_t* value) {
  if (end_ - cursor_->position() < static_cast<uint64_t>(bytes)) {
    return BadMessage(message_, cursor_->position(), "fixed" + std::to_string(8 * bytes) + " is cut off");
  }
  *value = 0;
  for (int i = 0; i < bytes; ++i) *value |= uint64_t{cursor_->Next()} << (8 * i);
  return Status();
}

Status FieldReader::Next(Field* field) {
  field->begin = cursor_->position();
  uint64_t tag = 0;
  TILEWIRE_RETURN_IF_ERROR(Varint(kMaxVarint32Bytes, "tag", &tag));
  const uint64_t number = tag >> 3;
  if (number == 0 || number > kMaxFieldNumber) {
    return BadMessage(
        message_, field->begin,
        "field number is " + std::to_string(number) + "; allowed: 1 to " + std::to_string(kMaxFieldNumber));
  }
  field->number = static_cast<uint32_t>(number);
  field->type = static_cast<WireType>(tag & 7);
  switch (field->type) {
    case WireType::kVarint:
      return Varint(kMaxVarintBytes, "varint", &field->value);
    case WireType::kFixed64:
      return Fixed(8, &field->value);
    case WireType::kFixed32:
      return Fixed(4, &field->value);
    case WireType::kLen:
      break;
    default:
      return BadMessage(message_, field->begin,
                        "wire type of field " + std::to_string(number) + " is " + std::to_string(tag & 7) +
                            "; allowed: 0, 1, 2, 5");
  }
  TILEWIRE_RETURN_IF_ERROR(Varint(kMaxVarint32Bytes, "length", &field->value));
  const uint64_t left = end_ - cursor_->position();
  if (field->value > left) {
    return BadMessage(message_, field->begin,
                      "length of field " + std::to_string(number) + " is " + std::to_string(field->value) +
                          ", but only " + std::to_string(left) + " bytes are left");
  }
  return Status();
}

}  // namespace tilewire::wire

#include "proto/wire/codec.h"

#include <algorithm>
#include <utility>

#include "proto/wire/cursor.h"

namespace tilewire::wire {
namespace {

// ExecuteRequest: open 1, chunk 2, join 3. ExecuteResponse: opened 1, chunk 2, result 3, joined 4. A chunk
// beside any of the others is wrong in both; field 4 of a request is unknown and does no harm.
constexpr uint32_t kExecuteChunk = 2, kExecuteLast = 4;
constexpr uint32_t kChunkOperand = 1, kChunkOffset = 2, kChunkCrc32c = 3;
/// `data` of Chunk and of Operand.
constexpr uint32_t kData = 15;

constexpr std::string_view kExecuteName = "Execute message";

Status Twice(std::string_view name, const Field& field) {
  return BadMessage(name, field.begin, "given twice");
}

void TakePayload(Cursor* cursor, uint64_t bytes, Pieces* pieces) {
  cursor->Take(bytes, [pieces](Bytes run) { pieces->push_back(run); });
}

void Append(Cursor* cursor, uint64_t bytes, std::string* out) {
  cursor->Take(bytes,
               [out](Bytes run) { out->append(reinterpret_cast<const char*>(run.data()), run.size()); });
}

/// Reads a Chunk of `bytes` bytes at the cursor.
Status ReadChunk(Cursor* cursor, uint64_t bytes, ChunkView* chunk) {
  FieldReader reader(cursor, cursor->position() + bytes, "chunk");
  bool have_data = false;
  Field field;
  while (!reader.done()) {
    TILEWIRE_RETURN_IF_ERROR(reader.Next(&field));
    if (field.Is(kChunkOperand, WireType::kVarint)) {
      chunk->operand = static_cast<uint32_t>(field.value);
    } else if (field.Is(kChunkOffset, WireType::kVarint)) {
      chunk->offset = field.value;
    } else if (field.Is(kChunkCrc32c, WireType::kFixed32)) {
      chunk->crc32c = static_cast<uint32_t>(field.value);
    } else if (field.Is(kData, WireType::kLen)) {
      if (have_data) return Twice("chunk.data", field);
      have_data = true;
      chunk->data_bytes = field.value;
      TakePayload(cursor, field.value, &chunk->data);
    } else if (field.type == WireType::kLen) {
      cursor->Skip(field.value);
    }
  }
  return Status();
}

/// Appends the Operand of `bytes` bytes at the cursor to `header`, as field `number` and without `data`.
Status ReadOperand(Cursor* cursor, uint64_t bytes, int number, std::string* header,
                   UnaryView::Payload* payload) {
  const std::string name = "operand in field " + std::to_string(number);
  FieldReader reader(cursor, cursor->position() + bytes, name);
  bool have_data = false;
  std::string rest;
  Field field;
  while (!reader.done()) {
    Cursor begin = *cursor;
    TILEWIRE_RETURN_IF_ERROR(reader.Next(&field));
    if (field.Is(kData, WireType::kLen)) {
      if (have_data) return Twice(name + ".data", field);
      have_data = true;
      payload->data_bytes = field.value;
      TakePayload(cursor, field.value, &payload->data);
      continue;
    }
    if (field.type == WireType::kLen) cursor->Skip(field.value);
    Append(&begin, cursor->position() - field.begin, &rest);
  }
  payload->present = true;
  AppendLengthPrefix(header, number, rest.size());
  *header += rest;
  return Status();
}

/// `place(field)`: where an operand that stands in that field goes, null where the field is no operand.
template <typename Place>
Result<UnaryView> Split(const Pieces& message, UnaryView view, const Place& place) {
  const uint64_t total = TotalBytes(message);
  if (total == 0) return Fail(BadMessage("request", 0, "empty"));
  Cursor cursor(message);
  FieldReader reader(&cursor, total, "request");
  Field field;
  while (!reader.done()) {
    Cursor begin = cursor;
    TILEWIRE_RETURN_IF_ERROR(reader.Next(&field));
    if (field.type == WireType::kLen) {
      TILEWIRE_ASSIGN_OR_RETURN(UnaryView::Payload* const payload, place(field, &view));
      if (payload != nullptr) {
        TILEWIRE_RETURN_IF_ERROR(
            ReadOperand(&cursor, field.value, static_cast<int>(field.number), &view.header, payload));
        continue;
      }
      cursor.Skip(field.value);
    }
    Append(&begin, cursor.position() - field.begin, &view.header);
  }
  return view;
}

}  // namespace

size_t TotalBytes(const Pieces& pieces) {
  size_t total = 0;
  for (const Bytes piece : pieces) total += piece.size();
  return total;
}

Result<Envelope> SplitExecute(const Pieces& message) {
  const uint64_t total = TotalBytes(message);
  if (total == 0) return Fail(BadMessage(kExecuteName, 0, "empty"));
  Cursor cursor(message);
  FieldReader reader(&cursor, total, kExecuteName);
  Envelope envelope;
  uint64_t chunk_begin = 0;
  std::optional<uint64_t> other_begin;
  Field field;
  while (!reader.done()) {
    TILEWIRE_RETURN_IF_ERROR(reader.Next(&field));
    if (field.type != WireType::kLen) continue;
    if (field.number == kExecuteChunk) {
      if (envelope.chunk) return Fail(Twice("chunk", field));
      chunk_begin = field.begin;
      TILEWIRE_RETURN_IF_ERROR(ReadChunk(&cursor, field.value, &envelope.chunk.emplace()));
      continue;
    }
    if (field.number <= kExecuteLast) other_begin = field.begin;
    cursor.Skip(field.value);
  }
  if (envelope.chunk && other_begin) {
    return Fail(
        BadMessage("chunk", chunk_begin,
                   "another member of the same oneof stands at byte " + std::to_string(*other_begin)));
  }
  if (!envelope.chunk && !other_begin) {
    return Fail(BadMessage(kExecuteName, 0, "no member of the oneof is set"));
  }
  if (other_begin) {
    Cursor begin(message);
    Append(&begin, total, &envelope.other.emplace());
  }
  return envelope;
}

Result<UnaryView> SplitUnary(const Pieces& message, std::span<const int> operand_fields) {
  UnaryView empty;
  empty.operands.resize(operand_fields.size());
  return Split(message, std::move(empty),
               [&](const Field& field, UnaryView* view) -> Result<UnaryView::Payload*> {
                 const auto found =
                     std::find(operand_fields.begin(), operand_fields.end(), static_cast<int>(field.number));
                 if (found == operand_fields.end()) return nullptr;
                 auto& payload = view->operands[static_cast<size_t>(found - operand_fields.begin())];
                 if (payload.present)
                   return Fail(Twice("operand in field " + std::to_string(field.number), field));
                 return &payload;
               });
}

Result<UnaryView> SplitRepeated(const Pieces& message, int operand_field, size_t most) {
  return Split(message, UnaryView(), [&](const Field& field, UnaryView* view) -> Result<UnaryView::Payload*> {
    if (static_cast<int>(field.number) != operand_field) return nullptr;
    if (view->operands.size() == most)
      return Fail(BadMessage("request", field.begin, "has more than " + std::to_string(most) + " operands"));
    return &view->operands.emplace_back();
  });
}

}  // namespace tilewire::wire

// SplitExecute: any bytes in any pieces give an error or an envelope that does not depend on the cuts and can
// be written and read again.
#include "tests/fuzz/cut_pieces.h"

namespace {

using tilewire::fuzz::Contiguous;
using tilewire::wire::ChunkView;

void CheckSame(const ChunkView& a, const ChunkView& b) {
  FUZZ_CHECK(a.operand == b.operand && a.offset == b.offset && a.crc32c == b.crc32c &&
             a.data_bytes == b.data_bytes);
  FUZZ_CHECK(Contiguous(a.data) == Contiguous(b.data));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tilewire::fuzz::CutPieces message(tilewire::fuzz::Input(data, size));
  const auto cut = tilewire::wire::SplitExecute(message.cut());
  const tilewire::wire::Pieces one_piece = message.whole();
  const auto whole = tilewire::wire::SplitExecute(one_piece);
  FUZZ_CHECK(cut.has_value() == whole.has_value());
  if (!cut) {
    tilewire::fuzz::CheckRefusal(cut.error());
    FUZZ_CHECK(cut.error().message() == whole.error().message());
    return 0;
  }
  FUZZ_CHECK(cut->chunk.has_value() != cut->other.has_value());
  if (cut->other) {
    FUZZ_CHECK(*cut->other == Contiguous(one_piece) && cut->other == whole->other);
    return 0;
  }
  const ChunkView& chunk = *cut->chunk;
  CheckSame(chunk, *whole->chunk);
  FUZZ_CHECK(tilewire::wire::TotalBytes(chunk.data) == chunk.data_bytes);
  const std::string header =
      tilewire::wire::ChunkHeader(chunk.operand, chunk.offset, chunk.crc32c, chunk.data_bytes);
  tilewire::wire::Pieces written = {{reinterpret_cast<const uint8_t*>(header.data()), header.size()}};
  written.insert(written.end(), chunk.data.begin(), chunk.data.end());
  const auto again = tilewire::wire::SplitExecute(written);
  FUZZ_CHECK(again && again->chunk);
  CheckSame(chunk, *again->chunk);
  return 0;
}

// SplitUnary and SplitRepeated: any bytes in any pieces give an error or a view that does not depend on the
// cuts, whose header is a request again, with the same operands and no data.
#include "tests/fuzz/cut_pieces.h"

namespace {

using tilewire::fuzz::Contiguous;
using tilewire::wire::Pieces;

/// `split(pieces)` is one of the two.
template <typename Split>
void Check(const tilewire::fuzz::CutPieces& message, const Split& split) {
  const auto cut = split(message.cut());
  const Pieces one_piece = message.whole();
  const auto whole = split(one_piece);
  FUZZ_CHECK(cut.has_value() == whole.has_value());
  if (!cut) {
    tilewire::fuzz::CheckRefusal(cut.error());
    FUZZ_CHECK(cut.error().message() == whole.error().message());
    return;
  }
  FUZZ_CHECK(cut->header == whole->header && cut->operands.size() == whole->operands.size());
  FUZZ_CHECK(cut->header.size() <= tilewire::wire::TotalBytes(one_piece));
  const auto again = split({{reinterpret_cast<const uint8_t*>(cut->header.data()), cut->header.size()}});
  FUZZ_CHECK(again && again->header == cut->header && again->operands.size() == cut->operands.size());
  for (size_t i = 0; i < cut->operands.size(); ++i) {
    const auto &a = cut->operands[i], &b = whole->operands[i], &c = again->operands[i];
    FUZZ_CHECK(a.present == b.present && a.data_bytes == b.data_bytes &&
               Contiguous(a.data) == Contiguous(b.data));
    FUZZ_CHECK(tilewire::wire::TotalBytes(a.data) == a.data_bytes);
    FUZZ_CHECK(c.present == a.present && c.data_bytes == 0 && c.data.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tilewire::fuzz::CutPieces message(tilewire::fuzz::Input(data, size));
  constexpr int kOperands[] = {14, 15};
  Check(message, [&](const Pieces& pieces) { return tilewire::wire::SplitUnary(pieces, kOperands); });
  Check(message, [](const Pieces& pieces) { return tilewire::wire::SplitRepeated(pieces, 15, 8); });
  return 0;
}

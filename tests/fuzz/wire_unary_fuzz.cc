// SplitUnary: any bytes in any pieces give an error or a view that does not depend on the cuts, whose header
// is a request again, with the same operands and no data.
#include "tests/fuzz/cut_pieces.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tilewire::fuzz::Contiguous;
  constexpr int kOperands[] = {14, 15};
  const tilewire::fuzz::CutPieces message(tilewire::fuzz::Input(data, size));
  const auto cut = tilewire::wire::SplitUnary(message.cut(), kOperands);
  const tilewire::wire::Pieces one_piece = message.whole();
  const auto whole = tilewire::wire::SplitUnary(one_piece, kOperands);
  FUZZ_CHECK(cut.has_value() == whole.has_value());
  if (!cut) {
    tilewire::fuzz::CheckRefusal(cut.error());
    FUZZ_CHECK(cut.error().message() == whole.error().message());
    return 0;
  }
  FUZZ_CHECK(cut->header == whole->header && cut->operands.size() == 2 && whole->operands.size() == 2);
  FUZZ_CHECK(cut->header.size() <= tilewire::wire::TotalBytes(one_piece));
  const auto again = tilewire::wire::SplitUnary(
      {{reinterpret_cast<const uint8_t*>(cut->header.data()), cut->header.size()}}, kOperands);
  FUZZ_CHECK(again && again->header == cut->header);
  for (size_t i = 0; i < 2; ++i) {
    const auto &a = cut->operands[i], &b = whole->operands[i], &c = again->operands[i];
    FUZZ_CHECK(a.present == b.present && a.data_bytes == b.data_bytes &&
               Contiguous(a.data) == Contiguous(b.data));
    FUZZ_CHECK(tilewire::wire::TotalBytes(a.data) == a.data_bytes);
    FUZZ_CHECK(c.present == a.present && c.data_bytes == 0 && c.data.empty());
  }
  return 0;
}

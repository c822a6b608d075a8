// A message in pieces that the fuzzer chooses, each in a heap block of its own.
#pragma once

#include <vector>

#include "proto/wire/codec.h"
#include "tests/fuzz/fuzz_input.h"

namespace tilewire::fuzz {

/// The input's first bytes say where to cut, the rest is the message. Blocks have exactly their piece's size,
/// so AddressSanitizer sees a read across a border.
class CutPieces {
 public:
  explicit CutPieces(Input input) {
    std::vector<size_t> lengths(static_cast<size_t>(input.Below(16)));
    for (size_t& length : lengths) length = static_cast<size_t>(input.Below(24));
    wire::Bytes rest = input.rest();
    whole_.assign(rest.begin(), rest.end());
    for (const size_t length : lengths) {
      const size_t bytes = std::min(length, rest.size());
      blocks_.emplace_back(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(bytes));
      rest = rest.subspan(bytes);
    }
    if (!rest.empty()) blocks_.emplace_back(rest.begin(), rest.end());
    for (const auto& block : blocks_) pieces_.emplace_back(block);
  }
  const wire::Pieces& cut() const { return pieces_; }
  wire::Pieces whole() const { return {wire::Bytes(whole_)}; }

 private:
  std::vector<uint8_t> whole_;
  std::vector<std::vector<uint8_t>> blocks_;
  wire::Pieces pieces_;
};

inline std::string Contiguous(const wire::Pieces& pieces) {
  std::string out;
  for (const wire::Bytes piece : pieces)
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return out;
}

}  // namespace tilewire::fuzz

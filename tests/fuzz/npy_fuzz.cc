// The .npy header parser: any bytes give an error that names the file, or a spec whose data lies in the file
// and whose header, written again, reads back.
#include "client/cpp/npy.h"

#include <string>

#include "tests/fuzz/fuzz_input.h"

namespace {

using tilewire::client::NpyHeader;

void CheckReadsBack(const NpyHeader& header) {
  const std::string written = tilewire::client::FormatNpyHeader(header.spec);
  FUZZ_CHECK(written.size() % 64 == 0);
  const uint64_t file_bytes = written.size() + static_cast<uint64_t>(header.spec.bytes());
  const std::span<const uint8_t> prefix(reinterpret_cast<const uint8_t*>(written.data()), written.size());
  const auto again = tilewire::client::ParseNpyHeader(prefix, file_bytes, "again");
  FUZZ_CHECK(again && again->spec == header.spec && !again->fortran_order);
  FUZZ_CHECK(again->data_offset == written.size() && again->major_version == 1);
  FUZZ_CHECK(!tilewire::client::ParseNpyHeader(prefix, file_bytes - 1, "again"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first two bytes say how large the file is beyond what is at hand, up to kMaxArrayBytes.
  tilewire::fuzz::Input input(data, size);
  const uint64_t scale = static_cast<uint64_t>(input.Below(61)), more = uint64_t{input.Byte()} << scale >> 8;
  const std::span<const uint8_t> prefix = input.rest();
  const uint64_t file_bytes = prefix.size() + more;
  const auto header = tilewire::client::ParseNpyHeader(prefix, file_bytes, "some.npy");
  if (!header) {
    tilewire::fuzz::CheckRefusal(header.error());
    FUZZ_CHECK(header.error().message().starts_with("some.npy"));
    return 0;
  }
  FUZZ_CHECK(header->data_offset <= prefix.size());
  FUZZ_CHECK(header->data_offset + static_cast<uint64_t>(header->spec.bytes()) <= file_bytes);
  FUZZ_CHECK(header->major_version >= 1 && header->major_version <= 3);
  CheckReadsBack(*header);
  return 0;
}

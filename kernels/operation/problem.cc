#include "kernels/operation/problem.h"

#include <string>

#include "kernels/operation/descriptor.h"

namespace tilewire {

std::string_view Problem::name() const {
  return descriptor_->name;
}

std::string_view Problem::numeric_version() const {
  return descriptor_->numeric_version;
}

int64_t Problem::result_offset(size_t index) const {
  const std::span<const ArraySpec> all = results();
  int64_t offset = 0;
  for (size_t i = 0; i < index; ++i)
    offset += (all[i].bytes() + kResultAlignment - 1) / kResultAlignment * kResultAlignment;
  return offset;
}

int64_t Problem::result_bytes() const {
  const size_t last = results().size() - 1;
  return result_offset(last) + results()[last].bytes();
}

int64_t Problem::payload_bytes() const {
  int64_t bytes = 0;
  for (const ArraySpec& result : results()) bytes += result.bytes();
  return bytes;
}

size_t Problem::result_at(int64_t offset) const {
  size_t index = 0;
  while (index + 1 < results().size() && result_offset(index + 1) <= offset) ++index;
  return index;
}

void Problem::PlaceResults(std::byte* area, Buffers* buffers) const {
  for (size_t i = 0; i < results().size(); ++i) buffers->results[i] = area + result_offset(i);
}

tl::unexpected<Status> Problem::NotWindowed(std::string_view why) {
  return Fail(Status(Code::kFailedPrecondition, "", why));
}

Result<std::unique_ptr<Problem>> Problem::Windowed() const {
  return NotWindowed("a " + std::string(name()) + " needs all of its input at once");
}

}  // namespace tilewire

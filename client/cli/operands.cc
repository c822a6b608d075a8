#include "client/cli/operands.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tilewire::cli {
namespace {
constexpr std::string_view kPrefix = "array:";
}  // namespace

Result<std::string> ParseArrayId(const std::string& text) {
  const std::string id = text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  if (!id.empty() && std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; })) return id;
  return BadValue("array id", "'" + id + "'", "one that put, ls or --store printed");
}

Result<client::ArraySource> OpenOperand(const std::string& text) {
  if (!text.starts_with(kPrefix)) return client::ArraySource::OpenNpy(text);
  TILEWIRE_ASSIGN_OR_RETURN(std::string id, ParseArrayId(text));
  return client::ArraySource::Resident(std::move(id));
}

Result<client::SharedRegion> ShareOperands(const Globals& globals,
                                           std::vector<client::ArraySource>* operands) {
  constexpr uint64_t kAlignment = 4096, kStep = 8 << 20;
  uint64_t bytes = 0;
  for (const auto& operand : *operands)
    bytes += (operand.wire_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  if (!globals.via_region || bytes == 0) return client::SharedRegion();
  TILEWIRE_ASSIGN_OR_RETURN(client::SharedRegion region,
                            client::Client::Connect(globals.server, globals.connect)
                                .Share(bytes, {.writable = false}, globals.call_options()));
  uint64_t place = 0;
  for (auto& operand : *operands) {
    const uint64_t size = operand.wire_bytes();
    if (size == 0) continue;
    client::SourceReader reader(operand);
    for (uint64_t at = 0; at < size; at += kStep) {
      const uint64_t step = std::min(kStep, size - at);
      const client::SourceSlice slice = reader.Slice(at, step);
      std::memcpy(region.data() + place + at, slice.bytes.data(), step);
      reader.Done(at, step);
    }
    operand = region.source(operand.spec(), place);
    place += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  return region;
}

Status LearnSpecs(client::Client* client, std::vector<client::ArraySource>* operands,
                  client::CallOptions* options) {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  for (auto& operand : *operands) {
    const auto* stored = std::get_if<client::ArraySource::Stored>(&operand.place());
    if (stored == nullptr || operand.known_spec()) continue;
    const auto start = steady_clock::now();
    TILEWIRE_ASSIGN_OR_RETURN(const client::ArrayInfo info, client->Stat(stored->id, *options));
    operand = client::ArraySource::Resident(info.id, info.spec);
    const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
    if (options->timeout) options->timeout = std::max(*options->timeout - took, milliseconds(1));
  }
  return {};
}

}  // namespace tilewire::cli

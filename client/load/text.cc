#include "client/load/text.h"

#include <array>
#include <utility>

#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

using Words = std::pair<std::string_view, const char*>;

template <size_t kCount>
std::string Lookup(const std::array<Words, kCount>& table, std::string_view name) {
  for (const auto& [key, words] : table)
    if (key == name) return words;
  return std::string(name);
}

}  // namespace

std::string StageInWords(std::string_view stage) {
  static constexpr std::array<Words, 8> kStages{
      {{"queue", "waiting for admission"},
       {"receive", "receiving (gRPC and the socket)"},
       {"stage", "copying out of messages (the server's memory)"},
       {"h2d", "copying to the device (PCIe)"},
       {"kernel", "the kernels (the device)"},
       {"d2h", "copying from the device (PCIe)"},
       {"send", "sending (gRPC and the socket)"},
       {"other", "what no stage covers (dispatch, parsing, waking threads)"}}};
  return Lookup(kStages, stage);
}

std::string TierInWords(std::string_view tier) {
  static constexpr std::array<Words, 7> kTiers{
      {{"h2d", "a copy from pinned memory to the device"},
       {"d2h", "a copy from the device to pinned memory"},
       {"h2d_both", "a copy to the device beside one from it"},
       {"d2h_both", "a copy from the device beside one to it"},
       {"host_copy_1", "a memcpy into pinned memory by one thread"},
       {"host_copy_all", "a memcpy into pinned memory by all threads"},
       {"device_copy", "a copy within the device's memory, read + written"}}};
  return Lookup(kTiers, tier);
}

std::string FormatNoise(const std::optional<double>& share) {
  return share ? " ± " + FormatShare(*share) : "";
}

}  // namespace tilewire::load

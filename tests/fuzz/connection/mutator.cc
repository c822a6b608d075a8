// What libFuzzer changes in a row of records: the bytes of one, or which there are and in what order. Byte by
// byte a changed length would turn all records behind it into others.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "tests/fuzz/connection/records.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace tilewire::fuzz;

void MutatePayload(Record* record, size_t most) {
  const size_t size = record->payload.size();
  record->payload.resize(std::max(size, std::min<size_t>(most, size + 64)));
  auto* bytes = reinterpret_cast<uint8_t*>(record->payload.data());
  record->payload.resize(LLVMFuzzerMutate(bytes, size, record->payload.size()));
}

void MutateRow(Script* script, std::mt19937* random) {
  const auto below = [random](size_t n) { return static_cast<size_t>((*random)() % n); };
  auto& records = script->records;
  if (records.empty()) {
    records.push_back({.kind = static_cast<Kind>(below(kKinds)), .a = 0, .b = kLast, .payload = {}});
    return;
  }
  const auto place = records.begin() + static_cast<std::ptrdiff_t>(below(records.size()));
  switch (below(6)) {
    case 0:
      records.erase(place);
      break;
    case 1: {
      const Record copy = *place;
      records.insert(records.begin() + static_cast<std::ptrdiff_t>(below(records.size() + 1)), copy);
      break;
    }
    case 2:
      std::iter_swap(place, records.begin() + static_cast<std::ptrdiff_t>(below(records.size())));
      break;
    case 3:
      records.insert(place, {.kind = static_cast<Kind>(below(kKinds)),
                             .a = static_cast<uint8_t>((*random)()),
                             .b = static_cast<uint8_t>((*random)()),
                             .payload = {}});
      break;
    case 4:
      place->a = static_cast<uint8_t>(below(4) == 0 ? (*random)() : place->a + 1);
      break;
    default:
      place->b ^= static_cast<uint8_t>(1u << below(8));
  }
}

size_t Write(const Script& script, uint8_t* data, size_t max_size) {
  const std::string bytes = ScriptBytes(script);
  const size_t size = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), size);
  return size;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::mt19937 random(seed);
  Script script = ParseScript(data, size);
  switch (random() % 8) {
    case 0:
      script.flags ^= static_cast<uint8_t>(1u << random() % 5);
      break;
    case 1:
    case 2:
    case 3:
      MutateRow(&script, &random);
      break;
    default:
      if (script.records.empty()) {
        MutateRow(&script, &random);
      } else {
        MutatePayload(&script.records[random() % script.records.size()], max_size);
      }
  }
  return Write(script, data, max_size);
}

/// The beginning of one row and the end of another.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_size, unsigned int seed) {
  std::mt19937 random(seed);
  Script first = ParseScript(data1, size1);
  const Script second = ParseScript(data2, size2);
  first.records.resize(random() % (first.records.size() + 1));
  const auto from = static_cast<std::ptrdiff_t>(random() % (second.records.size() + 1));
  first.records.insert(first.records.end(), second.records.begin() + from, second.records.end());
  return Write(first, out, max_size);
}

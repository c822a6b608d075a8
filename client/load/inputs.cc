#include "client/load/inputs.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "client/load/machine.h"
#include "client/load/random.h"
#include "kernels/figures/text.h"
#include "kernels/operation/problem.h"

namespace tilewire::load {
namespace {

/// A finite value in (−4, 4) from random bits, never 0.
double Value(uint64_t bits) {
  const double value = (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52 * 4;
  return (bits & 1) != 0 ? -value : value;
}

/// Any sign and mantissa, exponents 1 to 16 of 31: normal numbers under 4.
uint16_t HalfBits(uint64_t bits) {
  const auto exponent = static_cast<uint16_t>(1 + (bits >> 32) % 16);
  return static_cast<uint16_t>((bits & 0x83ff) | (exponent << 10));
}

template <typename T, typename Make>
void Fill(std::vector<uint8_t>* bytes, uint64_t seed, const Make& make) {
  Random random(seed);
  for (size_t at = 0; at + sizeof(T) <= bytes->size(); at += sizeof(T)) {
    const T value = make(random.Next());
    std::memcpy(bytes->data() + at, &value, sizeof(T));
  }
}

}  // namespace

void FillRandom(const ArraySpec& spec, uint64_t seed, std::vector<uint8_t>* bytes) {
  bytes->resize(static_cast<size_t>(spec.bytes()));
  switch (spec.dtype) {
    case DType::kBool:
      return Fill<uint8_t>(bytes, seed, [](uint64_t bits) { return static_cast<uint8_t>(bits >> 63); });
    case DType::kF16:
      return Fill<uint16_t>(bytes, seed, HalfBits);
    case DType::kBF16:
      return Fill<uint16_t>(bytes, seed, [](uint64_t bits) {
        return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(Value(bits))) >> 16);
      });
    case DType::kF32:
    case DType::kC64:
      return Fill<float>(bytes, seed, [](uint64_t bits) { return static_cast<float>(Value(bits)); });
    case DType::kF64:
    case DType::kC128:
      return Fill<double>(bytes, seed, Value);
    case DType::kI8:
    case DType::kU8:
      return Fill<uint8_t>(bytes, seed, [](uint64_t bits) { return static_cast<uint8_t>(bits >> 56); });
    case DType::kI16:
    case DType::kU16:
      return Fill<uint16_t>(bytes, seed, [](uint64_t bits) { return static_cast<uint16_t>(bits >> 48); });
    case DType::kI32:
    case DType::kU32:
      return Fill<uint32_t>(bytes, seed, [](uint64_t bits) { return static_cast<uint32_t>(bits >> 32); });
    case DType::kI64:
    case DType::kU64:
      return Fill<uint64_t>(bytes, seed, [](uint64_t bits) { return bits; });
  }
}

std::vector<std::vector<uint8_t>> ExpectedResults(const OperationSpec& spec,
                                                  const std::vector<std::vector<uint8_t>>& operands) {
  // The scenario was checked, so there is a problem.
  const std::vector<ArraySpec> specs(operands.size(), spec.operand);
  const auto made = spec.operation.descriptor->Make(specs, spec.operation.attributes).value();
  if (made->result_is_operand()) return {operands.front()};
  const auto whole = made->Whole();
  const Problem& problem = whole ? *whole : *made;
  // Operands are only read.
  std::vector<std::byte> area(static_cast<size_t>(problem.result_bytes()));
  std::vector<std::byte> scratch(static_cast<size_t>(problem.scratch_bytes()));
  Buffers buffers{.scratch = scratch.data()};
  problem.PlaceResults(area.data(), &buffers);
  for (size_t k = 0; k < operands.size(); ++k)
    buffers.operands[k] = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(operands[k].data()));
  Alone alone;
  for (int64_t i = 0; i < problem.range_count(); ++i) problem.RunHost({i}, buffers, alone);
  if (problem.has_finish()) problem.RunHost(Step::Finish(), buffers, alone);
  std::vector<std::vector<uint8_t>> results;
  for (size_t k = 0; k < problem.results().size(); ++k) {
    const auto* const begin = reinterpret_cast<const uint8_t*>(area.data()) + problem.result_offset(k);
    results.emplace_back(begin, begin + problem.results()[k].bytes());
  }
  return results;
}

Result<Inputs> Inputs::Make(std::span<const OperationSpec> operations, uint32_t inputs, uint64_t seed) {
  double wanted = 0;
  for (const OperationSpec& spec : operations) wanted += static_cast<double>(spec.bytes()) * inputs;
  const double free = static_cast<double>(AvailableMemoryBytes());
  if (wanted > free / 2)
    return Fail(Status(Code::kResourceExhausted, "MEMORY",
                       "inputs and expected results take " + FormatBytes(static_cast<uint64_t>(wanted)) +
                           "; allowed: half of the free memory, " +
                           FormatBytes(static_cast<uint64_t>(free / 2)) +
                           " (fewer inputs or smaller shapes need less)"));
  Inputs made;
  made.inputs_.assign(operations.size(), std::vector<Input>(inputs));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < operations.size() * inputs;) {
      const OperationSpec& spec = operations[i / inputs];
      Input& input = made.inputs_[i / inputs][i % inputs];
      input.operands.resize(spec.operands());
      for (size_t k = 0; k < input.operands.size(); ++k)
        FillRandom(spec.operand, Random(seed, i * 2 + k).Next(), &input.operands[k]);
      input.expected = ExpectedResults(spec, input.operands);
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), operations.size() * inputs);
       ++i)
    helpers.emplace_back(work);
  work();
  for (auto& helper : helpers) helper.join();
  return made;
}

}  // namespace tilewire::load

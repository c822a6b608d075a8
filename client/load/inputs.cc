#include "client/load/inputs.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "client/load/machine.h"
#include "client/load/random.h"
#include "kernels/figures/text.h"
#include "kernels/gaussian/gaussian.h"
#include "kernels/rmse/rmse.h"
#include "kernels/transpose/transpose.h"

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

template <typename Plan>
std::vector<uint8_t> Moved(const Plan& plan, int64_t items, const uint8_t* in) {
  std::vector<uint8_t> out(static_cast<size_t>(plan.result().bytes()));
  HostRange(plan, plan.whole(), 0, items, in, out.data());
  return out;
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

std::vector<uint8_t> ExpectedResult(const OperationSpec& spec,
                                    const std::vector<std::vector<uint8_t>>& operands) {
  // The scenario was checked, so the plans exist.
  if (const auto* op = std::get_if<client::RmseOp>(&spec.operation)) {
    const auto plan = rmse::Plan::Make(spec.operand, op->axes, static_cast<rmse::Output>(op->output)).value();
    std::vector<double> sums(static_cast<size_t>(plan.scratch_bytes() / 8));
    std::vector<double> values(static_cast<size_t>(plan.layout().segments));
    rmse::HostRange(plan, plan.whole(), 0, plan.whole().items(), operands[0].data(), operands[1].data(),
                    sums.data());
    rmse::HostFinish(plan, 0, plan.layout().segments, sums.data(), values.data());
    std::vector<uint8_t> bytes(values.size() * 8);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  if (const auto* op = std::get_if<client::GaussianOp>(&spec.operation)) {
    const auto plan = gaussian::Plan::Make(spec.operand, op->mean, op->stddev).value();
    return Moved(plan, gaussian::HostItems(plan, plan.whole()), operands[0].data());
  }
  const auto plan =
      transpose::Plan::Make(spec.operand, std::get<client::TransposeOp>(spec.operation).axes).value();
  return Moved(plan, transpose::HostItems(plan, plan.whole()), operands[0].data());
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
      input.expected = ExpectedResult(spec, input.operands);
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

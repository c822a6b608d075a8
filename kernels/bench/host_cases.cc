// The host groups: reads and copies, RMSE, transpose and gaussian pdf of the CPU device, for every thread
// count.
#include "kernels/bench/host_work.h"

namespace tilewire::bench {
namespace {

std::string Threads(int count) {
  return std::to_string(count) + (count == 1 ? " thread" : " threads");
}

/// Keeps the sign and exponent of a number in [1, 2) and random mantissa bits, for each element of a word.
struct Mask {
  uint64_t keep, set;
};
Mask MaskOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {0x03ff03ff03ff03ff, 0x3c003c003c003c00};
    case DType::kBF16:
      return {0x007f007f007f007f, 0x3f803f803f803f80};
    case DType::kF32:
      return {0x007fffff007fffff, 0x3f8000003f800000};
    case DType::kF64:
      return {0x000fffffffffffff, 0x3ff0000000000000};
    case DType::kBool:
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
    case DType::kC64:
    case DType::kC128:
      break;
  }
  return {~uint64_t{0}, 0};
}

}  // namespace

std::string HostReadLimit(int threads) {
  return "host read, " + Threads(threads);
}

std::string HostCopyLimit(int threads) {
  return "host copy, " + Threads(threads);
}

Case HostCase(std::string group, std::string name, int threads, const ArraySpec& spec) {
  Case one;
  one.group = std::move(group);
  one.name = name + "/" + Threads(threads);
  one.implementation = "tilewire";
  one.place = Place::kHost;
  one.dtype = Name(spec.dtype);
  for (int axis = 0; axis < spec.shape.rank(); ++axis) one.shape.push_back(spec.shape.dim(axis));
  return one;
}

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void FillHost(HostTeam& team, DType dtype, uint64_t seed, const HostBuffer& buffer) {
  const Mask mask = MaskOf(dtype);
  const int64_t words = (buffer.bytes() + 7) / 8;
  team.Run([&](int thread) {
    const auto [begin, end] = Share(words, thread, team.threads(), 512);
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t word = (Mix(seed + static_cast<uint64_t>(i)) & mask.keep) | mask.set;
      std::memcpy(buffer.data() + 8 * i, &word,
                  static_cast<size_t>(std::min<int64_t>(8, buffer.bytes() - 8 * i)));
    }
  });
}

void AddHostCases(const CaseOptions& options, std::vector<Case>* cases) {
  for (const int threads : options.threads) {
    AddHostLimitCases(threads, cases);
    AddHostRmseCases(threads, cases);
    AddHostCompareCases(threads, cases);
    AddHostTransposeCases(threads, cases);
    AddHostGaussianCases(threads, cases);
  }
}

}  // namespace tilewire::bench

// Random numbers that are the same on every machine, which the standard library's distributions are not.
#pragma once

#include <cmath>
#include <cstdint>

namespace tilewire::load {

/// SplitMix64. Not thread-safe; cheap to make, so everybody has one.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// A stream of its own for each (seed, part).
  Random(uint64_t seed, uint64_t part) : state_(seed) { state_ = Next() ^ (part * 0xd1342543de82ef95u); }

  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  /// Uniform in [0, bound), `bound` ≥ 1.
  uint64_t Below(uint64_t bound) { return static_cast<uint64_t>(Uniform() * static_cast<double>(bound)); }
  /// Exponential with mean 1.
  double Exponential() { return -std::log1p(-Uniform()); }

 private:
  uint64_t state_;
};

}  // namespace tilewire::load

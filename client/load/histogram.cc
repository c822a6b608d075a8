#include "client/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewire::load {

namespace {

/// How many of `count` values are at most their percentile; never none.
uint64_t RankOf(uint64_t count, double share) {
  const double wanted = std::ceil(share * static_cast<double>(count) - 1e-9);
  return std::clamp<uint64_t>(static_cast<uint64_t>(std::max(wanted, 1.0)), 1, count);
}

}  // namespace

bool Supports(uint64_t count, double share) {
  constexpr uint64_t kBeyond = 2;
  return share <= 0.5 || (count > 0 && count - RankOf(count, share) >= kBeyond);
}

Histogram& Histogram::operator=(const Histogram& other) {
  if (this != &other) *this = Histogram(other);
  return *this;
}

void Histogram::Add(double us, uint64_t count) {
  if (count == 0) return;
  constexpr double kLargestNs = 0x1p43 - 1024;  // 2.4 hours; keeps the octave within bounds
  const double ns = std::clamp(us * 1000, 1.0, kLargestNs);
  const auto value = static_cast<uint64_t>(ns);
  // Octave 0 holds [0, 128) ns one by one; octave k ≥ 1 [128 · 2^(k−1), 128 · 2^k) in steps of 2^(k−1).
  const int octave = std::max(0, static_cast<int>(std::bit_width(value)) - kBits);
  const uint64_t bucket = octave == 0 ? value : (value >> (octave - 1)) - (1u << kBits);
  auto& counts = octaves_[static_cast<size_t>(octave)];
  if (!counts) counts = std::make_unique<Octave>();
  (*counts)[bucket] += count;
  const double kept = ns / 1000;
  min_ = count_ == 0 ? kept : std::min(min_, kept);
  max_ = std::max(max_, kept);
  sum_ += kept * static_cast<double>(count);
  count_ += count;
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  for (size_t i = 0; i < octaves_.size(); ++i) {
    if (!other.octaves_[i]) continue;
    if (!octaves_[i]) octaves_[i] = std::make_unique<Octave>();
    for (size_t k = 0; k < octaves_[i]->size(); ++k) (*octaves_[i])[k] += (*other.octaves_[i])[k];
  }
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

double Histogram::UpperUs(int octave, int bucket) {
  if (octave == 0) return static_cast<double>(bucket + 1) / 1000;
  const auto steps = static_cast<double>((1 << kBits) + bucket + 1);
  return std::ldexp(steps, octave - 1) / 1000;
}

double Histogram::Percentile(double share) const {
  if (count_ == 0) return 0;
  const uint64_t rank = RankOf(count_, share);
  uint64_t passed = 0;
  for (int octave = 0; octave < kOctaves; ++octave) {
    const auto& counts = octaves_[static_cast<size_t>(octave)];
    if (!counts) continue;
    for (int bucket = 0; bucket < 1 << kBits; ++bucket) {
      passed += (*counts)[static_cast<size_t>(bucket)];
      if (passed >= rank) return std::clamp(UpperUs(octave, bucket), min_, max_);
    }
  }
  return max_;
}

std::optional<double> Histogram::Supported(double share) const {
  if (!Supports(count_, share)) return std::nullopt;
  return Percentile(share);
}

std::vector<std::pair<double, uint64_t>> Histogram::Buckets(size_t at_most) const {
  for (int shift = 0;; ++shift) {
    std::vector<std::pair<double, uint64_t>> buckets;
    for (int octave = 0; octave < kOctaves; ++octave) {
      const auto& counts = octaves_[static_cast<size_t>(octave)];
      if (!counts) continue;
      for (int first = 0; first < 1 << kBits; first += 1 << shift) {
        uint64_t sum = 0;
        for (int k = first; k < first + (1 << shift); ++k) sum += (*counts)[static_cast<size_t>(k)];
        if (sum > 0) buckets.emplace_back(UpperUs(octave, first + (1 << shift) - 1), sum);
      }
    }
    if (buckets.size() <= at_most || shift == kBits) return buckets;
  }
}

}  // namespace tilewire::load

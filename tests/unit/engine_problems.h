// Operations with operands and the result that the host kernels give: what every way of running a job must
// match.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine::testing {

using Bytes = std::vector<std::byte>;

struct Problem {
  std::function<std::unique_ptr<Operation>()> make;
  std::vector<Bytes> operands;
  Bytes expected;
};

inline Bytes RandomBytes(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(static_cast<size_t>(count));
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min<size_t>(8, bytes.size() - at));
  }
  return bytes;
}
/// As ==, which goes byte by byte where nothing is optimised: for megabytes.
inline bool SameBytes(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// One-dimensional RMSE with ranges of `tiles` tiles, so that small operands have many ranges.
class FineRmse : public rmse::RmseProblem {
 public:
  FineRmse(const rmse::Plan& plan, int64_t tiles) : RmseProblem(plan), tiles_(tiles) {}
  rmse::Sums sums(int64_t index) const override { return {&plan_, Range(index), 0}; }
  int64_t range_count() const override { return (plan_.layout().tiles + tiles_ - 1) / tiles_; }
  ByteInterval range_bytes(int64_t index) const override {
    const rmse::Range range = Range(index);
    return {range.byte_begin, range.byte_end};
  }
  bool has_finish() const override { return true; }
  bool range_finishes() const override { return false; }
  std::unique_ptr<Operation> Whole() const override { return nullptr; }
  Result<std::unique_ptr<Operation>> Windowed() const override;

 protected:
  rmse::Range Range(int64_t index) const {
    const int64_t begin = index * tiles_, end = std::min(begin + tiles_, plan_.layout().tiles);
    const int64_t tile_bytes = rmse::kTileElements * SizeOf(plan_.operand().dtype);
    return {.segment_begin = 0,
            .segment_end = 1,
            .tile_begin = begin,
            .tile_end = end,
            .byte_begin = begin * tile_bytes,
            .byte_end = std::min(end * tile_bytes, plan_.operand().bytes())};
  }
  const int64_t tiles_;
};

/// The same with the operands' bytes of each range for themselves.
class WindowedFineRmse final : public FineRmse {
 public:
  WindowedFineRmse(const rmse::Plan& plan, int64_t tiles)
      : FineRmse(plan, tiles), part_(PartOf(0)), last_(PartOf(range_count() - 1)) {}
  rmse::Sums sums(int64_t index) const override {
    const rmse::Plan& part = index + 1 < range_count() ? part_ : last_;
    return {&part, part.whole(), index * tiles_};
  }

 private:
  rmse::Plan PartOf(int64_t index) const {
    const ByteInterval bytes = range_bytes(index);
    const DType dtype = plan_.operand().dtype;
    const std::vector<int64_t> dims{(bytes.end - bytes.begin) / SizeOf(dtype)};
    return *rmse::Plan::Make(*MakeSpec(dtype, dims), {}, plan_.output());
  }
  rmse::Plan part_, last_;
};

inline Result<std::unique_ptr<Operation>> FineRmse::Windowed() const {
  return std::make_unique<WindowedFineRmse>(plan_, tiles_);
}

/// A batch of matrix transposes, one range a matrix: each range fills its own bytes of the result.
class FineTranspose final : public transpose::TransposeProblem {
 public:
  using TransposeProblem::TransposeProblem;
  int64_t range_count() const override { return plan_.layout().dims[0]; }
  bool ranges_fill_result() const override { return true; }
  std::unique_ptr<Operation> Whole() const override { return nullptr; }
  transpose::Range band(int64_t index) const override {
    const transpose::Layout& layout = plan_.layout();
    transpose::Range range = plan_.whole();
    range.dims[0] = 1;
    range.in_offset = index * layout.in_strides[0];
    range.out_offset = index * layout.out_strides[0];
    range.byte_begin = range.in_offset * layout.element_bytes;
    range.byte_end = range.byte_begin + layout.in_strides[0] * layout.element_bytes;
    return range;
  }
};

/// A gaussian pdf with ranges of `elements` elements: each fills its own bytes of the result.
class FineGaussian : public gaussian::GaussianProblem {
 public:
  FineGaussian(const gaussian::Plan& plan, int64_t elements) : GaussianProblem(plan), elements_(elements) {}
  gaussian::Part part(int64_t index) const override { return {&plan_, Range(index)}; }
  int64_t range_count() const override { return (plan_.whole().end + elements_ - 1) / elements_; }
  ByteInterval range_bytes(int64_t index) const override {
    const gaussian::Range range = Range(index);
    const int64_t size = SizeOf(plan_.input().dtype);
    return {range.begin * size, range.end * size};
  }
  std::unique_ptr<Operation> Whole() const override { return nullptr; }
  Result<std::unique_ptr<Operation>> Windowed() const override;

 protected:
  gaussian::Range Range(int64_t index) const {
    return {index * elements_, std::min((index + 1) * elements_, plan_.whole().end)};
  }
  const int64_t elements_;
};

/// The same with the bytes of each range for themselves.
class WindowedFineGaussian final : public FineGaussian {
 public:
  using FineGaussian::FineGaussian;
  gaussian::Part part(int64_t index) const override {
    const gaussian::Range range = Range(index);
    return {&plan_, {0, range.end - range.begin}};
  }
};

inline Result<std::unique_ptr<Operation>> FineGaussian::Windowed() const {
  return std::make_unique<WindowedFineGaussian>(plan_, elements_);
}

/// `tiles` > 0: one-dimensional, with ranges of so many tiles.
inline Problem RmseProblem(DType dtype, const std::vector<int64_t>& dims, const std::vector<int32_t>& axes,
                           uint64_t seed, int64_t tiles = 0) {
  const rmse::Plan plan = *rmse::Plan::Make(*MakeSpec(dtype, dims), axes, rmse::Output::kRmse);
  Problem problem;
  for (uint64_t i = 0; i < 2; ++i)
    problem.operands.push_back(RandomBytes(plan.operand().bytes(), 2 * seed + i));
  problem.expected.resize(static_cast<size_t>(plan.result().bytes()));
  std::vector<double> sums(static_cast<size_t>(plan.scratch_bytes() / 8));
  const rmse::Range whole = plan.whole();
  rmse::HostRange(plan, whole, 0, whole.items(), problem.operands[0].data(), problem.operands[1].data(),
                  sums.data());
  rmse::HostFinish(plan, 0, plan.layout().segments, sums.data(),
                   reinterpret_cast<double*>(problem.expected.data()));
  problem.make = [plan, tiles]() -> std::unique_ptr<Operation> {
    if (tiles > 0) return std::make_unique<FineRmse>(plan, tiles);
    return rmse::MakeProblem(plan);
  };
  return problem;
}

/// `fine`: three dimensions, the first kept: one range each index of it.
inline Problem TransposeProblem(DType dtype, const std::vector<int64_t>& dims,
                                const std::vector<int32_t>& axes, uint64_t seed, bool fine = false) {
  const transpose::Plan plan = *transpose::Plan::Make(*MakeSpec(dtype, dims), axes);
  Problem problem;
  problem.operands.push_back(RandomBytes(plan.input().bytes(), seed));
  problem.expected.resize(static_cast<size_t>(plan.result().bytes()));
  const transpose::Range whole = plan.whole();
  transpose::HostRange(plan, whole, 0, transpose::HostItems(plan, whole), problem.operands[0].data(),
                       problem.expected.data());
  problem.make = [plan, fine]() -> std::unique_ptr<Operation> {
    if (fine) return std::make_unique<FineTranspose>(plan);
    return transpose::MakeProblem(plan);
  };
  return problem;
}

/// Random bits, so NaN, infinities and subnormals too. `elements` > 0: ranges of so many elements.
inline Problem GaussianProblem(DType dtype, const std::vector<int64_t>& dims, double mean, double stddev,
                               uint64_t seed, int64_t elements = 0) {
  const gaussian::Plan plan = *gaussian::Plan::Make(*MakeSpec(dtype, dims), mean, stddev);
  Problem problem;
  problem.operands.push_back(RandomBytes(plan.input().bytes(), seed));
  problem.expected.resize(static_cast<size_t>(plan.result().bytes()));
  const gaussian::Range whole = plan.whole();
  gaussian::HostRange(plan, whole, 0, gaussian::HostItems(plan, whole), problem.operands[0].data(),
                      problem.expected.data());
  problem.make = [plan, elements]() -> std::unique_ptr<Operation> {
    if (elements > 0) return std::make_unique<FineGaussian>(plan, elements);
    return gaussian::MakeProblem(plan);
  };
  return problem;
}

/// 48 ranges of 4 KiB in each of two operands: bulk, but quick.
inline Problem FineRmseProblem(uint64_t seed) {
  return RmseProblem(DType::kU8, {48 * 4096 - 7}, {}, seed, 1);
}
/// 24 ranges of 12 KiB, each a prefix of the result.
inline Problem FineTransposeProblem(uint64_t seed) {
  return TransposeProblem(DType::kU8, {24, 96, 128}, {0, 2, 1}, seed, true);
}

/// 24 ranges of 12 KiB and a short one, each a prefix of the result.
inline Problem FineGaussianProblem(uint64_t seed) {
  return GaussianProblem(DType::kF32, {24 * 3072 + 5}, 0.25, 1.5, seed, 3072);
}

/// Small and bulk, of each operation; those whose results are prefixes and those that finish at the end.
inline std::vector<Problem> ProblemsOfEveryKind() {
  std::vector<Problem> problems;
  problems.push_back(RmseProblem(DType::kF32, {1000}, {}, 1));
  problems.push_back(RmseProblem(DType::kU8, {37, 501}, {1}, 2));
  problems.push_back(RmseProblem(DType::kF32, {300, 1000}, {0}, 3));  // bulk
  problems.push_back(FineRmseProblem(4));
  problems.push_back(FineTransposeProblem(5));
  problems.push_back(FineGaussianProblem(6));
  problems.push_back(TransposeProblem(DType::kI16, {31, 549}, {1, 0}, 7));
  problems.push_back(TransposeProblem(DType::kF32, {310, 549}, {1, 0}, 8));
  return problems;
}

}  // namespace tilewire::engine::testing

// An operation with two results of different dtypes, shapes and sizes, for tests; and how their bytes are
// collected.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/operation/descriptor.h"
#include "tests/unit/engine_testing.h"

namespace tilewire::engine::testing {

/// No request can ask for it.
inline constexpr std::string_view kExtremesOperands[] = {"input"};
inline constexpr Descriptor kExtremesDescriptor = {
    .name = "extremes",
    .numeric_version = "extremes.1",
    .operands = kExtremesOperands,
    .accepts = [](DType dtype) { return dtype == DType::kI16; },
    .attributes = {},
    .make = nullptr,
    .examples = nullptr};

/// Of i16 of two dimensions: the smallest of each row, i64, and the largest of each column, f64. A range is a
/// band of rows: it fills its part of the first result, and a row of scratch, out of which the finish makes
/// the second one.
class Extremes : public Operation {
 public:
  Extremes(int64_t rows, int64_t columns, int64_t band)
      : Operation(&kExtremesDescriptor),
        rows_(rows),
        columns_(columns),
        band_(band),
        operand_(*MakeSpec(DType::kI16, std::vector<int64_t>{rows, columns})),
        results_{*MakeSpec(DType::kI64, std::vector<int64_t>{rows}),
                 *MakeSpec(DType::kF64, std::vector<int64_t>{1, columns})} {}
  std::span<const ArraySpec> operands() const override { return {&operand_, 1}; }
  std::span<const ArraySpec> results() const override { return results_; }
  int64_t scratch_bytes() const override { return range_count() * columns_ * 2; }
  int64_t range_count() const override { return (rows_ + band_ - 1) / band_; }
  ByteInterval range_bytes(int64_t index) const override {
    return {index * band_ * columns_ * 2, std::min((index + 1) * band_, rows_) * columns_ * 2};
  }
  bool has_finish() const override { return true; }
  Result<std::unique_ptr<Operation>> Windowed() const override;
  void RunHost(Step step, const Buffers& buffers, Team&) const override {
    auto* const scratch = reinterpret_cast<int16_t*>(buffers.scratch);
    if (step.is_finish()) return Finish(scratch, reinterpret_cast<double*>(buffers.results[1]));
    int16_t* const largest = scratch + step.range * columns_;
    std::fill_n(largest, columns_, std::numeric_limits<int16_t>::min());
    const int64_t begin = step.range * band_;
    const auto* row = reinterpret_cast<const int16_t*>(buffers.operands[0]) + FirstRow(begin) * columns_;
    auto* const smallest = reinterpret_cast<int64_t*>(buffers.results[0]);
    for (int64_t i = begin; i < std::min(begin + band_, rows_); ++i, row += columns_) {
      smallest[i] = row[0];
      for (int64_t j = 0; j < columns_; ++j) {
        if (row[j] < smallest[i]) smallest[i] = row[j];
        if (row[j] > largest[j]) largest[j] = row[j];
      }
    }
  }

 protected:
  /// Where in the operand's buffer row `row` is, which begins a band.
  virtual int64_t FirstRow(int64_t row) const { return row; }
  const int64_t rows_, columns_, band_;

 private:
  void Finish(const int16_t* scratch, double* result) const {
    for (int64_t j = 0; j < columns_; ++j) {
      result[j] = scratch[j];
      for (int64_t i = 1; i < range_count(); ++i)
        result[j] = std::max<double>(result[j], scratch[i * columns_ + j]);
    }
  }
  const ArraySpec operand_;
  const ArraySpec results_[2];
};

/// The same with the operand's bytes of each range for themselves.
class WindowedExtremes final : public Extremes {
 public:
  using Extremes::Extremes;

 private:
  int64_t FirstRow(int64_t) const override { return 0; }
};

inline Result<std::unique_ptr<Operation>> Extremes::Windowed() const {
  return std::make_unique<WindowedExtremes>(rows_, columns_, band_);
}

/// What has to come out, column by column where the operation goes row by row. `expected` is one result
/// behind the other, nothing in between.
inline Problem ExtremesProblem(int64_t rows, int64_t columns, int64_t band, uint64_t seed) {
  Problem problem;
  problem.operands.push_back(RandomBytes(rows * columns * 2, seed));
  const auto* const values = reinterpret_cast<const int16_t*>(problem.operands[0].data());
  std::vector<int64_t> smallest(static_cast<size_t>(rows), 1'000'000);
  std::vector<double> largest(static_cast<size_t>(columns), -1e6);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) {
      const int16_t value = values[i * columns + j];
      if (value < smallest[i]) smallest[i] = value;
      if (value > largest[j]) largest[j] = value;
    }
  problem.expected.resize(smallest.size() * 8 + largest.size() * 8);
  std::memcpy(problem.expected.data(), smallest.data(), smallest.size() * 8);
  std::memcpy(problem.expected.data() + smallest.size() * 8, largest.data(), largest.size() * 8);
  problem.make = [=]() -> std::unique_ptr<Operation> {
    return std::make_unique<Extremes>(rows, columns, band);
  };
  return problem;
}

/// Bulk: 67 bands of 9 KiB and a part of one; results of 4,808 and 4,240 bytes, both longer than a block of
/// 4 KiB.
inline Problem BulkExtremes(uint64_t seed) {
  return ExtremesProblem(601, 530, 9, seed);
}
/// Small: results of 296 and 88 bytes.
inline Problem SmallExtremes(uint64_t seed) {
  return ExtremesProblem(37, 11, 37, seed);
}

/// The bytes of result `index`, out of one result behind the other.
inline Bytes ResultOf(const Operation& operation, const Bytes& all, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index; ++i) at += static_cast<size_t>(operation.results()[i].bytes());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
  return {begin, begin + operation.results()[index].bytes()};
}

/// Takes output for one stream until nothing is left; each piece, ascending and of one result, to its place
/// in `all`, which has one result behind the other.
inline Status TakeResults(Job& job, int stream, Bytes* all) {
  std::pair<uint32_t, int64_t> next{0, 0};
  for (;;) {
    auto told = std::make_shared<std::promise<Result<std::optional<OutputPiece>>>>();
    job.NextOutput(stream, true, [told](auto piece) { told->set_value(std::move(piece)); });
    auto got = told->get_future().get();
    if (!got) return got.error();
    if (!*got) return {};
    const OutputPiece& piece = **got;
    EXPECT_GE(std::pair(piece.result, piece.offset), next);
    next = {piece.result, piece.offset + static_cast<int64_t>(piece.bytes)};
    const auto results = job.operation().results();
    if (piece.result >= results.size() || next.second > results[piece.result].bytes() || piece.bytes == 0)
      return Status(Code::kInternal, "TEST", "a piece of no result");
    int64_t at = piece.offset;
    for (uint32_t i = 0; i < piece.result; ++i) at += results[i].bytes();
    std::memcpy(all->data() + at, piece.data, piece.bytes);
  }
}

/// All results, one behind the other.
inline Result<Bytes> CollectResults(Job& job) {
  Bytes all(static_cast<size_t>(job.operation().payload_bytes()));
  TILEWIRE_RETURN_IF_ERROR(TakeResults(job, 0, &all));
  return all;
}

}  // namespace tilewire::engine::testing

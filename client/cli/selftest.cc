// `tilewire selftest`: does this server give the bits that the numeric contracts promise?
#include <bit>
#include <cstdio>
#include <cstring>

#include "client/cli/commands.h"
#include "client/cli/report.h"
#include "kernels/gaussian/golden.h"
#include "kernels/rmse/golden.h"
#include "kernels/transpose/transpose.h"

namespace tilewire::cli {
namespace {

using client::ArraySource;
using client::Client;

/// What differed: empty when the bits are right.
using Outcome = Result<std::string>;

std::string Bits(uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(bits));
  return text;
}

Outcome CheckGolden(Client* client, const client::CallOptions& options, const rmse::GoldenCase& golden) {
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec spec, MakeSpec(golden.dtype, std::array{golden.n}));
  std::vector<uint8_t> a(static_cast<size_t>(spec.bytes())), b(a.size());
  rmse::FillGolden(golden, a.data(), b.data());
  const struct {
    client::RmseOutput output;
    const char* name;
    uint64_t bits;
  } expected[] = {{client::RmseOutput::kRmse, "rmse", golden.rmse},
                  {client::RmseOutput::kMse, "mse", golden.mse},
                  {client::RmseOutput::kSumSquares, "sum of squares", golden.sum_squares}};
  for (const auto& [output, name, bits] : expected) {
    TILEWIRE_ASSIGN_OR_RETURN(const auto reply,
                              client->Rmse(ArraySource::FromMemory(spec, a.data()),
                                           ArraySource::FromMemory(spec, b.data()), {{}, output}, options));
    const auto got = std::bit_cast<uint64_t>(reply.values.at(0));
    if (got != bits) return std::string(name) + " is " + Bits(got) + ", expected " + Bits(bits);
  }
  return "";
}

struct TransposeCase {
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;
};

/// Odd extents, unit axes, short and long fast axes, a kept leading axis, many axes.
const std::vector<TransposeCase>& TransposeCases() {
  static const std::vector<TransposeCase> cases = {
      {{}, {}},
      {{1}, {}},
      {{64, 64}, {1, 0}},
      {{127, 65}, {}},
      {{1000, 3}, {}},
      {{3, 1000}, {}},
      {{5, 33, 31}, {0, 2, 1}},
      {{7, 1, 13, 11}, {2, 0, 3, 1}},
      {{4, 6, 8, 10}, {3, 1, 2, 0}},
      {std::vector<int64_t>(12, 2), {11, 0, 10, 1, 9, 2, 8, 3, 7, 4, 6, 5}},
  };
  return cases;
}

Outcome CheckTranspose(Client* client, const client::CallOptions& options, const ArraySpec& spec,
                       const TransposeCase& test) {
  std::vector<uint8_t> in(static_cast<size_t>(spec.bytes()));
  uint32_t state = 12345;
  for (uint8_t& byte : in) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  TILEWIRE_ASSIGN_OR_RETURN(const transpose::Plan plan, transpose::Plan::Make(spec, test.axes));
  std::vector<uint8_t> expected(in.size()), got(in.size());
  for (int64_t i = 0; i < plan.range_count(); ++i) {
    const transpose::Range range = plan.range(i);
    transpose::HostRange(plan, range, 0, transpose::HostItems(plan, range), in.data(), expected.data());
  }
  const client::Sink sink = [&got](uint64_t offset, std::span<const uint8_t> bytes) {
    std::memcpy(got.data() + offset, bytes.data(), bytes.size());
    return Status();
  };
  TILEWIRE_ASSIGN_OR_RETURN(const auto reply, client->Transpose(ArraySource::FromMemory(spec, in.data()),
                                                                {test.axes}, sink, options));
  if (reply.spec != plan.result()) return std::string("the shape is ") + reply.spec.shape.ToString();
  return got == expected ? "" : "bytes differ";
}

/// `count` elements of `size` bytes: which one differs first, and how; empty when none does.
std::string FirstDifference(const uint8_t* got, const uint8_t* expected, size_t size, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t is = 0, should = 0;  // little-endian, as arrays are
    std::memcpy(&is, got + i * size, size);
    std::memcpy(&should, expected + i * size, size);
    if (is != should)
      return "element " + std::to_string(i) + " is " + Bits(is) + ", expected " + Bits(should);
  }
  return "";
}

Outcome CheckGaussian(Client* client, const client::CallOptions& options,
                      const gaussian::GoldenCase& golden) {
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec spec,
                            MakeSpec(golden.dtype, std::array<int64_t, 1>{gaussian::kGoldenElements}));
  std::vector<uint8_t> in(static_cast<size_t>(spec.bytes())), expected(in.size()), got(in.size());
  gaussian::FillGoldenInput(golden, in.data());
  gaussian::FillGoldenResult(golden, expected.data());
  const client::Sink sink = [&got](uint64_t offset, std::span<const uint8_t> bytes) {
    std::memcpy(got.data() + offset, bytes.data(), bytes.size());
    return Status();
  };
  TILEWIRE_ASSIGN_OR_RETURN(const auto reply,
                            client->GaussianPdf(ArraySource::FromMemory(spec, in.data()),
                                                {golden.mean, golden.stddev}, sink, options));
  if (reply.spec != spec) return std::string("the shape is ") + reply.spec.shape.ToString();
  return FirstDifference(got.data(), expected.data(), static_cast<size_t>(SizeOf(golden.dtype)),
                         gaussian::kGoldenElements);
}

/// Counts and prints the outcomes.
class Tally {
 public:
  explicit Tally(bool json) : json_(json) {}
  void Add(const std::string& name, const std::string& difference) {
    ++total_;
    if (!difference.empty()) failed_.push_back({{"name", name}, {"difference", difference}});
    if (json_) return;
    std::printf("%s  %s%s\n", difference.empty() ? "ok" : "bits differ", name.c_str(),
                difference.empty() ? "" : (": " + difference).c_str());
  }
  int Finish() {
    const size_t right = total_ - failed_.size();
    const int printed = Print(
        json_ ? nlohmann::ordered_json{{"cases", total_}, {"right", right}, {"failed", failed_}}.dump() + "\n"
              : std::to_string(right) + " of " + std::to_string(total_) + " cases have the right bits\n");
    return failed_.empty() ? printed : kExitFailed;
  }

 private:
  bool json_;
  size_t total_ = 0;
  nlohmann::ordered_json failed_ = nlohmann::ordered_json::array();
};

}  // namespace

int RunSelftest(const Globals& globals) {
  auto client = Client::Connect(globals.server);
  client::CallOptions options = globals.call_options();
  options.form = client::CallForm::kUnary;
  Tally tally(globals.json);
  for (const rmse::GoldenCase& golden : rmse::GoldenCases()) {
    const Outcome outcome = CheckGolden(&client, options, golden);
    if (!outcome) return PrintCallError(globals, outcome.error(), kExitFailed);
    tally.Add("rmse/" + std::string(golden.name), *outcome);
  }
  for (const DTypeInfo& dtype : AllDTypes()) {
    for (const TransposeCase& test : TransposeCases()) {
      const auto spec = MakeSpec(dtype.dtype, test.dims);
      const Outcome outcome = CheckTranspose(&client, options, *spec, test);
      if (!outcome) return PrintCallError(globals, outcome.error(), kExitFailed);
      std::string name = "transpose/" + std::string(dtype.name) + "/" + spec->shape.ToString() + " axes";
      for (const int32_t axis : test.axes) name += " " + std::to_string(axis);
      tally.Add(test.axes.empty() ? name + " reversed" : name, *outcome);
    }
  }
  for (const gaussian::GoldenCase& golden : gaussian::GoldenCases()) {
    const Outcome outcome = CheckGaussian(&client, options, golden);
    if (!outcome) return PrintCallError(globals, outcome.error(), kExitFailed);
    tally.Add("gaussian/" + std::string(golden.name), *outcome);
  }
  return tally.Finish();
}

}  // namespace tilewire::cli

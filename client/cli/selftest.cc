// `tilewire selftest`: does this server give the bits that the numeric contracts promise?
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "client/cli/commands.h"
#include "client/cli/report.h"

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

/// Which element of a result differs first, and how; empty when none does.
std::string FirstDifference(const PublishedAnswer& answer, const ArraySpec& spec,
                            const std::vector<uint8_t>& got, const std::vector<uint8_t>& expected) {
  if (got == expected) return "";
  const auto size = static_cast<size_t>(SizeOf(spec.dtype));
  if (answer.value.empty() || size > sizeof(uint64_t) || got.size() != expected.size()) return "bytes differ";
  size_t i = 0;
  while (std::memcmp(got.data() + i * size, expected.data() + i * size, size) == 0) ++i;
  uint64_t is = 0, should = 0;  // little-endian, as arrays are
  std::memcpy(&is, got.data() + i * size, size);
  std::memcpy(&should, expected.data() + i * size, size);
  const std::string which = answer.value + (got.size() > size ? " " + std::to_string(i) : "");
  return which + " is " + Bits(is) + ", expected " + Bits(should);
}

Outcome CheckAnswer(Client* client, const client::CallOptions& options, const Descriptor& descriptor,
                    const std::vector<ArraySource>& operands, const PublishedAnswer& answer) {
  std::vector<std::vector<uint8_t>> got(answer.results.size());
  const client::ResultSink sink = [&got](size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    if (result >= got.size()) return Status();  // the count tells
    if (got[result].size() < offset + bytes.size()) got[result].resize(offset + bytes.size());
    std::memcpy(got[result].data() + offset, bytes.data(), bytes.size());
    return Status();
  };
  TILEWIRE_ASSIGN_OR_RETURN(
      const auto reply,
      client->Execute(client::Operation(descriptor, answer.attributes), operands, sink, options));
  if (reply.specs.size() != got.size()) return std::to_string(reply.specs.size()) + " results";
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string difference = FirstDifference(answer, reply.specs[k], got[k], answer.results[k]);
    if (difference.empty()) continue;
    return got.size() == 1 ? difference : "result " + std::to_string(k) + ": " + difference;
  }
  return "";
}

Outcome CheckCase(Client* client, const client::CallOptions& options, const Descriptor& descriptor,
                  const PublishedCase& published) {
  const PublishedData data = published.data();
  std::vector<ArraySource> operands;
  for (size_t k = 0; k < published.operands.size(); ++k)
    operands.push_back(ArraySource::FromMemory(published.operands[k], data.operands[k].data()));
  for (const PublishedAnswer& answer : data.answers) {
    Outcome outcome = CheckAnswer(client, options, descriptor, operands, answer);
    if (!outcome || !outcome->empty()) return outcome;
  }
  return "";
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
  auto client = Client::Connect(globals.server, globals.connect);
  client::CallOptions options = globals.call_options();
  const auto server = client.Describe(options);
  if (!server) return PrintCallError(globals, server.error(), kExitFailed);
  options.form = client::CallForm::kUnary;
  options.lanes = 1;  // who says so means the device: its server's host would compute small calls itself
  Tally tally(globals.json);
  for (const client::OperationInfo& operation : client::Operations()) {
    if (std::ranges::find(server->numeric_versions, operation.descriptor->numeric_version) ==
        server->numeric_versions.end()) {
      std::fprintf(stderr, "note: this server does not compute %s\n",
                   std::string(operation.descriptor->numeric_version).c_str());
      continue;
    }
    for (const PublishedCase& published : operation.published()) {
      const Outcome outcome = CheckCase(&client, options, *operation.descriptor, published);
      if (!outcome) return PrintCallError(globals, outcome.error(), kExitFailed);
      tally.Add(published.name, *outcome);
    }
  }
  return tally.Finish();
}

}  // namespace tilewire::cli

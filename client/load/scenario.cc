#include "client/load/scenario.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "client/load/fields.h"

namespace tilewire::load {
namespace {

using Json = nlohmann::json;

/// What a unary request or reply can carry: the contract's 4 MiB less room for the rest of the message.
constexpr uint64_t kUnaryBytes = (4 << 20) - 1024;
constexpr double kMaxRate = 1e6, kMaxSeconds = 86'400;
constexpr uint32_t kMaxCallers = 4096, kMaxConnections = 64;

Mode ParseMode(const Json& json, Complaints* complaints) {
  Fields fields(json, "mode", complaints);
  Mode mode;
  const std::string type = fields.Word("type", "closed", {"closed", "open", "ramp"});
  mode.type = type == "open" ? ModeType::kOpen : type == "ramp" ? ModeType::kRamp : ModeType::kClosed;
  const bool closed = mode.type == ModeType::kClosed;
  mode.callers = static_cast<uint32_t>(fields.Integer("callers", closed ? 1 : 64, 1, kMaxCallers));
  if (!closed) {
    const std::string arrivals = fields.Word("arrivals", "poisson", {"poisson", "constant"});
    mode.arrivals = arrivals == "constant" ? Arrivals::kConstant : Arrivals::kPoisson;
  }
  if (mode.type == ModeType::kOpen) mode.rate = fields.Number("rate", std::nullopt, 1e-3, kMaxRate);
  if (mode.type == ModeType::kRamp) {
    mode.bound_us = fields.Number("bound_us", std::nullopt, 1, 1e9);
    mode.percentile = fields.Number("percentile", 99, 1, 100);
    mode.rate = fields.Number("start_rate", 10, 1e-3, kMaxRate);
    mode.max_rate = fields.Number("max_rate", kMaxRate, mode.rate, kMaxRate);
  }
  fields.Done();
  return mode;
}

std::vector<int32_t> ParseAxes(Fields& fields, const std::string& name) {
  std::vector<int32_t> axes;
  for (const int64_t axis : fields.Integers(name, false)) {
    if (axis < -kMaxRank || axis >= kMaxRank) fields.Wrong(name, "axes of the shape, each once");
    axes.push_back(static_cast<int32_t>(axis));
  }
  return axes;
}

/// The places in `words` of those that the field has.
std::vector<int32_t> ParseWords(Fields& fields, const std::string& name,
                                const std::vector<std::string>& words) {
  std::vector<int32_t> places;
  for (const std::string& word : fields.Words(name, words))
    places.push_back(static_cast<int32_t>(std::ranges::find(words, word) - words.begin()));
  return places;
}

/// The field that a flag is in a scenario.
AttributeValue ParseAttribute(Fields& fields, const AttributeInfo& info, const client::Flag& flag) {
  const std::string name(info.name);
  const std::vector<std::string> words(flag.words.begin(), flag.words.end());
  switch (info.kind) {
    case AttributeKind::kReal:
      return fields.Number(name, info.fallback, flag.positive ? 1e-300 : -1e300, 1e300);
    case AttributeKind::kInteger: {
      const std::string word = fields.Word(name, words[static_cast<size_t>(info.fallback)], words);
      return static_cast<int64_t>(std::ranges::find(words, word) - words.begin());
    }
    case AttributeKind::kIntegers:
      break;
  }
  return words.empty() ? ParseAxes(fields, name) : ParseWords(fields, name, words);
}

client::Operation ParseKind(Fields& fields) {
  const std::string kind = fields.Word("operation", std::nullopt, client::Commands());
  const client::OperationInfo* const named = client::FindOperation(kind);
  const client::OperationInfo& info = named != nullptr ? *named : client::Operations().front();
  client::Operation operation(*info.descriptor);
  for (const AttributeInfo& attribute : info.descriptor->attributes)
    operation.attributes.Set(attribute.name,
                             ParseAttribute(fields, attribute, *client::FindFlag(info, attribute.name)));
  return operation;
}

void ParseAccess(Fields& fields, OperationSpec* spec) {
  const std::string access =
      fields.Word("access", "stream", {"unary", "stream", "striped", "resident", "region"});
  spec->access = access == "unary"      ? Access::kUnary
                 : access == "striped"  ? Access::kStriped
                 : access == "resident" ? Access::kResident
                 : access == "region"   ? Access::kRegion
                                        : Access::kStream;
  if (spec->access == Access::kStriped) {
    spec->connections =
        static_cast<uint32_t>(fields.Integer("connections", std::nullopt, 2, kMaxConnections));
  } else if (spec->access == Access::kResident) {
    spec->connections = static_cast<uint32_t>(fields.Integer("connections", 1, 1, kMaxConnections));
    // With one operand there is nothing else to keep.
    const bool pair = spec->operands() > 1;
    const std::string stays = pair ? fields.Word("resident", "reference", {"reference", "all"})
                                   : fields.Word("resident", "all", {"all"});
    spec->resident = stays == "all" ? Stays::kAll : Stays::kReference;
  } else {
    fields.Integer("connections", 1, 1, 1);  // more of them is another access
  }
  const uint64_t sent = spec->operands() * static_cast<uint64_t>(spec->operand.bytes());
  if (spec->access == Access::kUnary && std::max(sent, spec->result_bytes()) > kUnaryBytes)
    fields.Wrong("shape", "operands together and the result of at most " + std::to_string(kUnaryBytes) +
                              " bytes each where access is unary");
}

OperationSpec ParseOperation(const Json& json, size_t index, Complaints* complaints) {
  Fields fields(json, "operations[" + std::to_string(index) + "]", complaints);
  OperationSpec spec;
  spec.operation = ParseKind(fields);
  std::vector<std::string> dtypes;
  for (const DTypeInfo& info : AllDTypes()) dtypes.emplace_back(info.name);
  const std::string dtype = fields.Word("dtype", "f32", dtypes);
  const std::vector<int64_t> dims = fields.Integers("shape", true);
  spec.weight = fields.Number("weight", 1, 1e-6, 1e6);
  if (complaints->status().ok()) {
    const auto operand = MakeSpec(*DTypeFromName(dtype), dims, "shape");
    if (!operand) {
      fields.Wrong("shape", operand.error().detail()->allowed);
    } else {
      spec.operand = *operand;
      const std::vector<ArraySpec> operands(spec.operands(), spec.operand);
      const auto results = client::ResultSpecs(spec.operation, operands);
      if (results) {
        spec.results = *results;
      } else {
        const std::string field = results.error().detail()->field;
        const bool of_dtype = field.ends_with("dtype");
        fields.Wrong(of_dtype                    ? "dtype"
                     : field.starts_with("axes") ? "axes"
                                                 : field,
                     results.error().detail()->allowed);
      }
    }
  }
  ParseAccess(fields, &spec);
  spec.name =
      fields.Text("name", std::string(spec.kind()) + " " + dtype + " " + spec.operand.shape.ToString());
  fields.Done();
  return spec;
}

StableRule ParseStable(const Json& json, Complaints* complaints) {
  Fields fields(json, "stable", complaints);
  StableRule rule;
  rule.within = fields.Number("within", rule.within, 1e-4, 1);
  rule.windows = static_cast<uint32_t>(fields.Integer("windows", rule.windows, 2, 100));
  rule.window_seconds = fields.Number("window_seconds", rule.window_seconds, 0.05, 3600);
  rule.max_seconds = fields.Number("max_seconds", rule.max_seconds, rule.window_seconds, kMaxSeconds);
  fields.Done();
  return rule;
}

void ParseLength(Fields& fields, Complaints* complaints, Scenario* scenario) {
  const bool ramp = scenario->mode.type == ModeType::kRamp;
  std::string first;
  for (const char* key : {"seconds", "requests", "stable"}) {
    if (!fields.Has(key)) continue;
    if (!first.empty()) fields.Wrong(key, "one of seconds, requests, stable; there is " + first + " already");
    if (ramp && std::string(key) != "seconds") fields.Wrong(key, "seconds (of each step) where mode is ramp");
    first = key;
  }
  if (first.empty() || first == "seconds")
    scenario->seconds = fields.Number("seconds", ramp ? 2 : 10, 0.01, kMaxSeconds);
  if (first == "requests")
    scenario->requests = fields.Integer("requests", std::nullopt, 1, 1'000'000'000'000);
  if (first == "stable")
    if (const Json* stable = fields.Object("stable", true))
      scenario->stable = ParseStable(*stable, complaints);
}

Scenario ParseAll(const Json& json, Complaints* complaints) {
  Fields fields(json, "", complaints);
  Scenario scenario;
  scenario.name = fields.Text("name", "");
  fields.Text("about", "");  // for people
  scenario.seed = fields.Integer("seed", 1, 0, uint64_t{1} << 53);
  if (const Json* mode = fields.Object("mode", false)) scenario.mode = ParseMode(*mode, complaints);
  scenario.warmup_seconds = fields.Number("warmup_seconds", 1, 0, 3600);
  ParseLength(fields, complaints, &scenario);
  scenario.timeout_seconds = fields.Number("timeout_seconds", 30, 0.001, kMaxSeconds);
  scenario.inputs = static_cast<uint32_t>(fields.Integer("inputs", 4, 1, 64));
  scenario.channels =
      static_cast<uint32_t>(fields.Integer("channels", std::min<uint32_t>(scenario.mode.callers, 8), 1, 256));
  const Json* operations = fields.List("operations");
  for (size_t i = 0; operations != nullptr && i < operations->size(); ++i) {
    scenario.operations.push_back(ParseOperation((*operations)[i], i, complaints));
    for (size_t k = 0; k < i; ++k)
      if (scenario.operations[k].name == scenario.operations[i].name)
        complaints->Add("operations[" + std::to_string(i) + "].name",
                        "\"" + scenario.operations[i].name + "\"",
                        "a name of its own; operations[" + std::to_string(k) + "] has it");
  }
  fields.Done();
  return scenario;
}

}  // namespace

const char* Name(Access access) {
  static constexpr const char* kNames[] = {"unary", "stream", "striped", "resident", "region"};
  return kNames[static_cast<size_t>(access)];
}

Result<Scenario> ParseScenario(std::string_view text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto upto = text.substr(0, std::min(error.byte > 0 ? error.byte - 1 : 0, text.size()));
    const auto line = std::to_string(1 + std::count(upto.begin(), upto.end(), '\n'));
    return Fail(Status(Code::kInvalidArgument, "SCENARIO",
                       source + ":" + line + ": the file is no JSON: " + error.what()));
  }
  const JsonLines lines(text);
  Complaints complaints(source, &lines);
  if (lines.repeated()) complaints.Add(*lines.repeated(), "there twice", "each field once");
  Scenario scenario = ParseAll(json, &complaints);
  if (!complaints.status().ok()) return Fail(complaints.status());
  if (scenario.name.empty()) scenario.name = source;
  return scenario;
}

Result<Scenario> LoadScenario(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad())
    return Fail(Status(Code::kNotFound, "SCENARIO", path + ": cannot be read as a scenario file"));
  return ParseScenario(text.str(), path);
}

}  // namespace tilewire::load

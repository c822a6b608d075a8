#include <nlohmann/json.hpp>

#include "kernels/bench/report.h"

namespace tilewire::bench {
namespace {

using Json = nlohmann::ordered_json;

Json Optional(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json ToJson(const Facts& facts) {
  Json json = Json::object();
  for (const auto& [name, value] : facts) json[name] = value;
  return json;
}

Json ToJson(const Record& record, const Measurement& measurement) {
  const Summary& seconds = measurement.seconds;
  Json json = {{"runs", seconds.runs},
               {"batch", measurement.batch},
               {"stopped_by", Name(measurement.stop)},
               {"min_s", seconds.min},
               {"quarter_s", seconds.quarter},
               {"median_s", seconds.median},
               {"mean_s", seconds.mean},
               {"three_quarters_s", seconds.three_quarters},
               {"max_s", seconds.max},
               {"spread", seconds.spread()}};
  if (measurement.mode != Mode::kCompletion) {
    json["bytes_per_s"] = Optional(record.Rate(measurement));
    json["share_of_limit"] = Optional(record.Share(measurement));
  }
  return json;
}

Json ToJson(const Check& check) {
  switch (check.kind) {
    case Check::Kind::kExact:
      return {{"kind", "exact"}};
    case Check::Kind::kRelative:
      return {{"kind", "relative"}, {"relative_error", check.relative_error}};
    case Check::Kind::kNothing:
      break;
  }
  return {{"kind", "nothing"}};
}

Json ToJson(const Record& record) {
  const CaseInfo& info = record.info;
  Json json = {{"group", info.group},
               {"name", info.name},
               {"implementation", info.implementation},
               {"place", info.place == Place::kHost ? "host" : "device"},
               {"dtype", info.dtype},
               {"shape", info.shape},
               {"axes", info.axes},
               {"bytes", info.bytes},
               {"limit", info.limit},
               {"note", info.note},
               {"sampled", info.sampled},
               {"outcome", Name(record.outcome)}};
  if (record.outcome != Outcome::kMeasured) {
    json["reason"] = record.reason;
    return json;
  }
  json["check"] = ToJson(record.check);
  for (const Measurement& measurement : record.measurements) {
    json[std::string(Name(measurement.mode))] = ToJson(record, measurement);
  }
  return json;
}

}  // namespace

std::string JsonReport(const Report& report) {
  Json limits = Json::object();
  for (const auto& [name, rate] : report.limits) limits[name] = rate;
  Json results = Json::array();
  for (const Record& record : report.records) results.push_back(ToJson(record));
  const Json json = {{"program", report.program},
                     {"machine", ToJson(report.machine)},
                     {"settings", ToJson(report.settings)},
                     {"limits_bytes_per_s", limits},
                     {"results", results}};
  // Names of GPUs and host processors come from outside: bad UTF-8 must not end the program after its work.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tilewire::bench

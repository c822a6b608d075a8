#include "client/load/compare.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

using nlohmann::json;
using Row = Comparison::Row;

constexpr double kErrorShare = 0.001;
/// Windows that differ by more see other things: caches, clocks, hiccups.
constexpr double kSameLength = 1.5;

/// How the arrays of a study's point went; results of before there was a choice do not say.
std::string ViaOf(const json& point) {
  return point.value("via", "wire");
}

/// Which of its three fields ends a scenario's window.
std::string EndOf(const json& scenario) {
  for (const char* field : {"requests", "stable"})
    if (scenario.contains(field)) return field;
  return "seconds";
}

/// Collects what differs in fields that both results have.
class Differences {
 public:
  void Add(const std::string& what, const json& a, const json& b) {
    if (a != b) found_.push_back(what + " differs: " + a.dump() + " and " + b.dump());
  }
  void AddFields(const std::string& of, const json& a, const json& b,
                 std::initializer_list<const char*> fields) {
    for (const char* field : fields)
      if (a.contains(field) && b.contains(field)) Add(of + field, a.at(field), b.at(field));
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

std::string Joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

class Comparer {
 public:
  Comparer(const CompareOptions& options, Comparison* out) : options_(options), out_(out) {}

  void Compare(const json& a, const json& b) {
    Note(a, b);
    if (a.at("kind") == "study") return Study(a, b);
    if (a.at("mode").at("type") == "ramp" && b.at("mode").at("type") == "ramp")
      Higher("ramp", "best rate", a.at("mode").at("best_rate"), b.at("mode").at("best_rate"), FormatNumber);
    for (const json& before : a.at("operations")) {
      const json* after =
          Find(b.at("operations"), [&](const json& x) { return x.at("name") == before.at("name"); });
      if (after == nullptr) {
        Gone(before.at("name").get<std::string>());
      } else {
        Stats(before.at("name").get<std::string>(), before, *after);
      }
    }
    if (a.at("operations").size() > 1) Stats("total", a.at("total"), b.at("total"));
  }

 private:
  template <typename Same>
  static const json* Find(const json& list, const Same& same) {
    const auto found = std::find_if(list.begin(), list.end(), same);
    return found == list.end() ? nullptr : &*found;
  }

  void Note(const json& a, const json& b) {
    out_->notes = Unlike(a, b);
    for (const json* result : {&a, &b}) {
      const std::string which = result == &a ? "first" : "second";
      if (result->at("generator").at("bottleneck") == true)
        out_->notes.push_back("in the " + which + " result the load generator was the bottleneck");
      const std::string reason = result->at("stop").at("reason");
      if (reason == "interrupted" || reason == "server_lost")
        out_->notes.push_back("the " + which + " result ended early: " + reason);
    }
  }

  void Add(Row row) {
    out_->regression |= row.regression;
    out_->rows.push_back(std::move(row));
  }
  void Gone(const std::string& name) { Add({name, "there", "yes", "no", -1, true}); }

  template <typename Text>
  void Higher(const std::string& of, const char* what, double before, double after, const Text& text) {
    const double change = before > 0 ? after / before - 1 : 0;
    Add({of, what, text(before), text(after), change, before > 0 && change < -options_.threshold});
  }
  void Lower(const std::string& of, const char* what, double before, double after, double threshold) {
    const double change = before > 0 ? after / before - 1 : 0;
    Add({of, what, FormatTime(before), FormatTime(after), change, before > 0 && change > threshold});
  }

  /// Failed calls of a Stat, as a share of all.
  void Errors(const std::string& name, const json& before, const json& after) {
    const auto share = [](const json& stat) {
      double errors = 0;
      for (const json& count : stat.at("errors")) errors += count.get<double>();
      const double calls = stat.at("calls").get<double>();
      return calls > 0 ? errors / calls : 0;
    };
    const double errors_before = share(before), errors_after = share(after);
    if (errors_before > 0 || errors_after > 0)
      Add({name, "errors", FormatShare(errors_before), FormatShare(errors_after),
           errors_before > 0 ? errors_after / errors_before - 1 : std::numeric_limits<double>::infinity(),
           errors_after > errors_before + kErrorShare});
  }

  void Stats(const std::string& name, const json& before, const json& after) {
    Higher(name, "calls/s", before.at("calls_per_second"), after.at("calls_per_second"), FormatNumber);
    const json &a = before.at("latency_us"), &b = after.at("latency_us");
    Lower(name, "p50", a.at("p50"), b.at("p50"), options_.threshold);
    if (a.contains("p99") && b.contains("p99"))
      Lower(name, "p99", a.at("p99"), b.at("p99"), options_.tail_threshold);
    Errors(name, before, after);
    if (after.at("wrong") != 0 || before.at("wrong") != 0)
      Add({name, "wrong answers", before.at("wrong").dump(), after.at("wrong").dump(), 0,
           after.at("wrong") != 0});
  }

  void Study(const json& a, const json& b) {
    const auto same = [](const json& x, const json& y) {
      for (const char* key : {"operation", "bytes", "block_bytes", "lanes", "connections", "overlap"})
        if (x.at(key) != y.at(key)) return false;
      return ViaOf(x) == ViaOf(y);
    };
    for (const json& before : a.at("study")) {
      const std::string name = before.at("operation").get<std::string>() + " via " + ViaOf(before) + " " +
                               before.at("bytes").dump() + " B, block " + before.at("block_bytes").dump() +
                               ", lanes " + before.at("lanes").dump() + ", connections " +
                               before.at("connections").dump() +
                               (before.at("overlap") == true ? ", overlap" : ", serial");
      const json* after = Find(b.at("study"), [&](const json& x) { return same(before, x); });
      if (after == nullptr) {
        Gone(name);
        continue;
      }
      Higher(name, "rate", before.at("bytes_per_second"), after->at("bytes_per_second"), FormatRate);
    }
    Errors("total", a.at("total"), b.at("total"));
    const json &wrong_a = a.at("total").at("wrong"), &wrong_b = b.at("total").at("wrong");
    if (wrong_a != 0 || wrong_b != 0)
      Add({"total", "wrong answers", wrong_a.dump(), wrong_b.dump(), 0, wrong_b != 0});
  }

  const CompareOptions& options_;
  Comparison* const out_;
};

}  // namespace

std::vector<std::string> Unlike(const json& a, const json& b) {
  Differences differences;
  differences.AddFields(
      "", a.at("server"), b.at("server"),
      {"device", "device_name", "processors", "version", "numeric_versions", "lanes", "block_bytes"});
  differences.AddFields("the client's ", a.at("client"), b.at("client"), {"processor", "cores"});
  json mode_a = a.at("mode"), mode_b = b.at("mode");
  for (json* mode : {&mode_a, &mode_b}) mode->erase("best_rate");
  differences.Add("mode", mode_a, mode_b);
  const json scenario_a = a.value("scenario", json::object()),
             scenario_b = b.value("scenario", json::object());
  differences.AddFields("the scenario's ", scenario_a, scenario_b,
                        {"operations", "inputs", "channels", "operation", "dtype", "sizes", "connections",
                         "blocks", "lanes", "point_seconds"});
  if (a.at("kind") == "study")
    differences.Add("the scenario's via", scenario_a.value("via", json{"wire"}),
                    scenario_b.value("via", json{"wire"}));
  differences.Add("what ends the window", EndOf(scenario_a), EndOf(scenario_b));
  const double seconds_a = scenario_a.value("seconds", 1.0), seconds_b = scenario_b.value("seconds", 1.0);
  if (std::max(seconds_a, seconds_b) > kSameLength * std::min(seconds_a, seconds_b))
    differences.Add("the window's length, seconds,", seconds_a, seconds_b);
  return differences.Take();
}

Result<Comparison> Compare(const json& a, const json& b, const CompareOptions& options) {
  for (const json* result : {&a, &b}) {
    const std::string field = result == &a ? "A.schema" : "B.schema";
    if (!result->is_object() || !result->contains("schema"))
      return BadValue(field, "absent", "tilewire-load/1");
    if (result->at("schema") != "tilewire-load/1")
      return BadValue(field, result->at("schema").dump(), "tilewire-load/1");
  }
  Comparison comparison;
  try {
    if (a.at("kind") != b.at("kind"))
      return BadValue("B.kind", b.at("kind").dump(), a.at("kind").dump() + ", as A");
    if (const auto unlike = Unlike(a, b); !unlike.empty() && !options.anyway)
      return Fail(
          Status(Code::kInvalidArgument, "UNLIKE",
                 "the results are not alike (--anyway compares them all the same): " + Joined(unlike)));
    Comparer(options, &comparison).Compare(a, b);
  } catch (const json::exception& error) {
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                       std::string("a result does not keep to its schema: ") + error.what()));
  }
  return comparison;
}

}  // namespace tilewire::load

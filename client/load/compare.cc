#include "client/load/compare.h"
#include "kernels/figures/text.h"

#include <algorithm>

namespace tilewire::load {
namespace {

using nlohmann::json;
using Row = Comparison::Row;

constexpr double kErrorShare = 0.001;

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
    const auto note = [&](const char* what, const json& before, const json& after) {
      if (before != after)
        out_->notes.push_back(std::string(what) + " differs: " + before.dump() + " and " + after.dump());
    };
    for (const char* field : {"device", "device_name", "processors", "version", "lanes"})
      note(field, a.at("server").at(field), b.at("server").at(field));
    note("the client's processor", a.at("client").at("processor"), b.at("client").at("processor"));
    if (a.at("kind") == "run") {
      json mode_a = a.at("mode"), mode_b = b.at("mode");
      mode_a.erase("best_rate");
      mode_b.erase("best_rate");
      note("mode", mode_a, mode_b);
    }
    for (const json* result : {&a, &b})
      if (result->at("generator").at("bottleneck") == true)
        out_->notes.push_back("in the " + std::string(result == &a ? "first" : "second") +
                              " result the load generator was the bottleneck");
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

  void Stats(const std::string& name, const json& before, const json& after) {
    Higher(name, "calls/s", before.at("calls_per_second"), after.at("calls_per_second"), FormatNumber);
    const json &a = before.at("latency_us"), &b = after.at("latency_us");
    Lower(name, "p50", a.at("p50"), b.at("p50"), options_.threshold);
    Lower(name, "p99", a.at("p99"), b.at("p99"), options_.tail_threshold);
    const auto share = [](const json& stat) {
      double errors = 0;
      for (const json& count : stat.at("errors")) errors += count.get<double>();
      const double calls = stat.at("calls").get<double>();
      return calls > 0 ? errors / calls : 0;
    };
    const double errors_before = share(before), errors_after = share(after);
    if (errors_before > 0 || errors_after > 0)
      Add({name, "errors", FormatShare(errors_before), FormatShare(errors_after),
           errors_before > 0 ? errors_after / errors_before - 1 : 0,
           errors_after > errors_before + kErrorShare});
    if (after.at("wrong") != 0 || before.at("wrong") != 0)
      Add({name, "wrong answers", before.at("wrong").dump(), after.at("wrong").dump(), 0,
           after.at("wrong") != 0});
  }

  void Study(const json& a, const json& b) {
    const auto same = [](const json& x, const json& y) {
      for (const char* key : {"operation", "bytes", "block_bytes", "lanes", "connections", "overlap"})
        if (x.at(key) != y.at(key)) return false;
      return true;
    };
    for (const json& before : a.at("study")) {
      const std::string name =
          before.at("operation").get<std::string>() + " " + before.at("bytes").dump() + " B, block " +
          before.at("block_bytes").dump() + ", lanes " + before.at("lanes").dump() + ", connections " +
          before.at("connections").dump() + (before.at("overlap") == true ? ", overlap" : ", serial");
      const json* after = Find(b.at("study"), [&](const json& x) { return same(before, x); });
      if (after == nullptr) {
        Gone(name);
        continue;
      }
      Higher(name, "rate", before.at("bytes_per_second"), after->at("bytes_per_second"), FormatRate);
    }
    const json &wrong_a = a.at("total").at("wrong"), &wrong_b = b.at("total").at("wrong");
    if (wrong_a != 0 || wrong_b != 0)
      Add({"total", "wrong answers", wrong_a.dump(), wrong_b.dump(), 0, wrong_b != 0});
  }

  const CompareOptions& options_;
  Comparison* const out_;
};

}  // namespace

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
    Comparer(options, &comparison).Compare(a, b);
  } catch (const json::exception& error) {
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                       std::string("a result does not keep to its schema: ") + error.what()));
  }
  return comparison;
}

}  // namespace tilewire::load

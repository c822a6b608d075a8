// Reads a policy, and says exactly what is wrong with one.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "server/base/limits.h"
#include "server/rpc/identity/identity.h"
#include "server/rpc/identity/policy.h"
#include "server/rpc/identity/strict_json.h"

namespace tilewire::rpc {
namespace {

using nlohmann::json;

/// What is wrong ends the reading.
struct Wrong {
  std::string text;
};

[[noreturn]] void Refuse(const std::string& where, const std::string& is, const std::string& allowed) {
  throw Wrong{where + " is " + is + "; allowed: " + allowed};
}

json ParseOrRefuse(std::string_view text) {
  auto parsed = ParseStrictJson(text);
  if (!parsed) throw Wrong{std::string(parsed.error().message())};
  return *std::move(parsed);
}

/// "64MiB" and numbers of bytes, 1 or more.
int64_t BytesOf(const std::string& where, const json& value) {
  constexpr const char* kAllowed = "bytes, 1 to 16384GiB, such as 1048576 or \"64MiB\"";
  constexpr int64_t kMost = int64_t{1} << 44;
  if (value.is_number_integer() && value >= 1 && value <= kMost) return value.get<int64_t>();
  if (!value.is_string()) Refuse(where, value.dump(), kAllowed);
  const std::string text = value.get<std::string>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"", 1}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}};
  for (const auto& [unit, size] : kUnits)
    if (error == std::errc() && std::string_view(end) == unit && number >= 1 && number <= kMost / size)
      return number * size;
  Refuse(where, value.dump(), kAllowed);
}

/// Whole numbers as the flags of the same names take them.
int64_t CountOf(const std::string& where, const json& value) {
  constexpr int64_t kMost = 1'000'000;
  if (value.is_number_integer() && value >= 1 && value <= kMost) return value.get<int64_t>();
  Refuse(where, value.dump(), "whole numbers, 1 to " + std::to_string(kMost));
}

}  // namespace

/// Reads one file.
class PolicyReader {
 public:
  explicit PolicyReader(const PolicyWords& words) : words_(words) {}

  Policy Read(std::string_view text) {
    const json all = ParseOrRefuse(text);
    Object("the policy", all, {"groups", "rules"});
    if (all.contains("groups")) ReadGroups(all["groups"]);
    if (!all.contains("rules") || !all["rules"].is_array())
      Refuse("rules", Shown(all, "rules"), "a list of rules");
    Policy policy;
    for (size_t i = 0; i < all["rules"].size(); ++i)
      policy.rules_.push_back(ReadRule("rules[" + std::to_string(i) + "]", all["rules"][i]));
    return policy;
  }

 private:
  static std::string Shown(const json& object, const std::string& key) {
    return object.contains(key) ? object[key].dump() : "missing";
  }
  static void Object(const std::string& where, const json& value, const std::set<std::string>& keys) {
    if (!value.is_object()) Refuse(where, value.dump(), "an object");
    for (const auto& [key, ignored] : value.items())
      if (!keys.contains(key)) {
        std::string allowed;
        for (const std::string& known : keys) allowed += (allowed.empty() ? "" : ", ") + known;
        Refuse(where + "." + key, "an unknown key", allowed);
      }
  }
  /// Each text of a list of 1 or more.
  static void Texts(const std::string& where, const json& list,
                    const std::function<void(const std::string&, const std::string&)>& take) {
    if (!list.is_array() || list.empty()) Refuse(where, list.dump(), "a list of texts, 1 or more");
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = where + "[" + std::to_string(i) + "]";
      if (!list[i].is_string()) Refuse(at, list[i].dump(), "a text");
      take(at, list[i].get<std::string>());
    }
  }

  void ReadGroups(const json& groups) {
    if (!groups.is_object()) Refuse("groups", groups.dump(), "an object of lists of identities");
    for (const auto& [name, list] : groups.items()) {
      if (name.find_first_of(":*/") != name.npos || name == "anonymous" || name.empty())
        Refuse("groups", "\"" + name + "\"", "names that are no identities");
      std::vector<std::string>& members = groups_[name];
      Texts("groups." + name, list,
            [&](const std::string& at, const std::string& who) { members.push_back(Who(at, who)); });
    }
  }

  /// An identity, or the beginning of some with * behind it.
  static std::string Who(const std::string& where, const std::string& who) {
    if (who == "*") return who;
    const bool beginning = who.ends_with('*');
    const std::string text = beginning ? who.substr(0, who.size() - 1) + "x" : who;  // a name for the check
    const auto identity = ParseIdentity(where, text);
    if (!identity || HasPattern(*identity))
      Refuse(where, "\"" + who + "\"",
             "*, anonymous, spiffe://..., dns:..., cn:..., token:..., jwt:..., header:..., with * at the end "
             "all "
             "that begin so, or "
             "a group");
    std::string named = identity->Text();  // as callers are: DNS names in lower case
    if (beginning) named.back() = '*';
    return named;
  }

  /// Of `known` those that a list names; with * at the end all that begin so.
  static Policy::Words Listed(const std::string& where, const json& list,
                              const std::vector<std::string>& known) {
    Policy::Words named;
    Texts(where, list, [&](const std::string& at, const std::string& word) {
      const std::string beginning = word.ends_with('*') ? word.substr(0, word.size() - 1) : "";
      size_t found = 0;
      for (const std::string& each : known) {
        if (word.ends_with('*') ? !each.starts_with(beginning) : each != word) continue;
        if (std::ranges::find(named, each) == named.end()) named.push_back(each);
        ++found;
      }
      if (found > 0) return;
      std::string allowed = "*";
      for (const std::string& each : known) allowed += ", " + each;
      Refuse(at, "\"" + word + "\"", allowed);
    });
    return named;
  }

  Policy::Rule ReadRule(const std::string& where, const json& rule) {
    Object(where, rule,
           {"who", "methods", "operations", "max_bytes", "admin", "calls_per_second", "bytes_per_second",
            "max_in_flight", "queue_length", "device_bytes", "streams", "arrays", "array_bytes", "regions",
            "region_bytes"});
    Policy::Rule out;
    if (!rule.contains("who")) Refuse(where + ".who", "missing", "a list of identities and groups");
    Texts(where + ".who", rule["who"], [&](const std::string& at, const std::string& who) {
      if (const auto group = groups_.find(who); group != groups_.end()) {
        out.who.insert(out.who.end(), group->second.begin(), group->second.end());
      } else {
        out.who.push_back(Who(at, who));
      }
    });
    if (!rule.contains("methods"))
      Refuse(where + ".methods", "missing", "a list of methods, such as [\"*\"]");
    out.methods = Listed(where + ".methods", rule["methods"], words_.methods);
    // What no rule says of operations is said by its methods.
    out.operations =
        Listed(where + ".operations", rule.value("operations", json::array({"*"})), words_.operations);
    const json admin = rule.value("admin", json(false));
    if (!admin.is_boolean()) Refuse(where + ".admin", admin.dump(), "true or false");
    for (const std::string& method : words_.admin_methods)
      if (!admin.get<bool>() && std::erase(out.methods, method) > 0) out.for_admins.push_back(method);
    if (rule.contains("max_bytes")) out.max_bytes = BytesOf(where + ".max_bytes", rule["max_bytes"]);
    out.limits = ReadLimits(where, rule);
    return out;
  }

  static PolicyLimits ReadLimits(const std::string& where, const json& rule) {
    PolicyLimits limits;
    const auto read = [&](const char* key, auto* value, auto* parse) {
      if (rule.contains(key))
        *value = static_cast<std::decay_t<decltype(*value)>>(parse(where + "." + key, rule[key]));
    };
    read("calls_per_second", &limits.calls_per_second, &CountOf);
    read("bytes_per_second", &limits.bytes_per_second, &BytesOf);
    read("max_in_flight", &limits.max_in_flight, &CountOf);
    read("queue_length", &limits.queue_length, &CountOf);
    read("device_bytes", &limits.device_bytes, &BytesOf);
    read("streams", &limits.streams, &CountOf);
    read("arrays", &limits.arrays, &CountOf);
    read("array_bytes", &limits.array_bytes, &BytesOf);
    read("regions", &limits.regions, &CountOf);
    read("region_bytes", &limits.region_bytes, &BytesOf);
    return limits;
  }

  const PolicyWords& words_;
  std::map<std::string, std::vector<std::string>> groups_;
};

Result<Policy> Policy::Parse(std::string_view text, const PolicyWords& words) {
  try {
    return PolicyReader(words).Read(text);
  } catch (const Wrong& wrong) {
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE", wrong.text));
  }
}

}  // namespace tilewire::rpc

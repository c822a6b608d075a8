#include "server/rpc/identity/strict_json.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace tilewire::rpc {

using nlohmann::json;

Result<json> ParseStrictJson(std::string_view text) {
  struct Doubled {
    std::string key;
  };
  const auto wrong = [](std::string what) {
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE", std::move(what)));
  };
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      throw Doubled{value.get<std::string>()};
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const Doubled& doubled) {
    return wrong("the key \"" + doubled.key + "\" is there twice in one object");
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(error.byte, text.size()));
    return wrong("line " + std::to_string(1 + std::count(text.begin(), end, '\n')) + " is no JSON");
  } catch (const json::exception&) {
    return wrong("a number is out of range");  // 1e999
  }
}

}  // namespace tilewire::rpc

#include "client/load/html.h"

#include <string_view>

#include "client/load/page.h"

namespace tilewire::load {
namespace {

/// JSON that holds no `<`, `>` or `&`: inside strings, the only place where JSON can have them, they are
/// escaped. So no text in it can end the script element or open a comment, and no tool that takes HTML apart
/// can misread it.
std::string ScriptSafeJson(const nlohmann::json& result) {
  const std::string plain = result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  safe.reserve(plain.size() + plain.size() / 16);
  for (const char c : plain) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string HtmlPage(const nlohmann::json& result) {
  const std::string_view page = PageTemplate();
  const size_t mark = page.find(kResultMark);
  std::string out(page.substr(0, mark));
  out += ScriptSafeJson(result);
  out += page.substr(mark + kResultMark.size());
  return out;
}

}  // namespace tilewire::load

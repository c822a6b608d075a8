#include "client/load/html.h"

#include <string_view>
#include <utility>

#include "client/cli/stage_colours.h"
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

/// The variable --STAGE is the stage's colour, and what has the class m-STAGE has it.
std::string Palette() {
  std::string light, dark, classes;
  for (const cli::StageColour& colour : cli::kStageColours) {
    const std::string name(colour.stage);
    light += " --" + name + ": " + std::string(colour.light) + ";";
    dark += " --" + name + ": " + std::string(colour.dark) + ";";
    classes += ".m-" + name + " { --c: var(--" + name + "); }\n";
  }
  return ":root {" + light +
         " }\n@media screen and (prefers-color-scheme: dark) { :root:not([data-paper]) {" + dark + " } }\n" +
         classes;
}

}  // namespace

std::string HtmlPage(const nlohmann::json& result) {
  const std::string_view page = PageTemplate();
  std::string out;
  size_t from = 0;
  for (const auto& [mark, text] :
       {std::pair(kPaletteMark, Palette()), std::pair(kResultMark, ScriptSafeJson(result))}) {
    const size_t at = page.find(mark, from);
    out += page.substr(from, at - from);
    out += text;
    from = at + mark.size();
  }
  return out.append(page.substr(from));
}

}  // namespace tilewire::load

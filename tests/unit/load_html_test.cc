// The results page as text: what the result brings stays data, whatever it holds. A browser looks at it in
// load_page_test.py.
#include "client/load/html.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "client/load/page.h"

namespace tilewire::load {
namespace {

using nlohmann::json;

constexpr std::string_view kOpen = R"(<script type="application/json" id="result">)";
constexpr std::string_view kClose = "</script>";

/// What stands between the tags of the script element that carries the data, up to the first end of a script.
std::string Payload(std::string_view page) {
  const size_t begin = page.find(kOpen);
  EXPECT_NE(begin, std::string_view::npos);
  page.remove_prefix(begin + kOpen.size());
  return std::string(page.substr(0, page.find(kClose)));
}

size_t Count(std::string_view text, std::string_view wanted) {
  size_t count = 0;
  for (size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) ++count;
  return count;
}

TEST(LoadHtml, TheTemplateHasOnePlaceForThePaletteAndOneForTheResult) {
  EXPECT_EQ(Count(PageTemplate(), kPaletteMark), 1u);
  EXPECT_EQ(Count(PageTemplate(), kResultMark), 1u);
  EXPECT_EQ(Count(PageTemplate(), "{{"), 2u) << "a part was not put in";
  EXPECT_EQ(Count(PageTemplate(), "<script"), 3u);
  EXPECT_EQ(Count(PageTemplate(), kClose), 3u);
}

TEST(LoadHtml, TheResultReadsBackAsItWas) {
  const json result = {
      {"schema", "tilewire-load/1"},
      {"kind", "run"},
      {"findings", {"12.6 GB/s, \"quoted\" \\ and \n broken", "größer als 3 × 10⁹ \xe2\x80\xa8"}},
      {"seconds", 0.1},
      {"total", {{"latency_us", {{"p99", 1234.5678901234567}}}}}};
  EXPECT_EQ(json::parse(Payload(HtmlPage(result))), result);
}

TEST(LoadHtml, NoTextBreaksOut) {
  const char* attacks[] = {
      "</script><script>alert(1)</script>", "</SCRIPT >", "<!--<script>", "-->",        "]]>",
      "<img src=x onerror=alert(1)>",       "&lt;b&gt;",  "{{result}}",   "{{styles}}", "\\u003c/script>"};
  json result = {{"findings", json::array()}, {"total", {{"errors", json::object()}}}};
  for (const char* attack : attacks) {
    result["findings"].push_back(attack);
    result["total"]["errors"][attack] = 1;  // keys too
  }
  const std::string page = HtmlPage(result);
  const std::string payload = Payload(page);
  EXPECT_EQ(payload.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(json::parse(payload), result);
  EXPECT_EQ(Count(page, "<script"), 3u);
  EXPECT_EQ(Count(page, kClose), 3u);
  const std::string_view tail = PageTemplate().substr(PageTemplate().find(kResultMark) + kResultMark.size());
  EXPECT_TRUE(std::string_view(page).ends_with(tail));
}

TEST(LoadHtml, BytesThatAreNoTextAndNumbersThatAreNoneAreShown) {
  json result = {{"server", {{"device_name", "broken \xff\xc3 name"}}},
                 {"seconds", std::numeric_limits<double>::infinity()}};
  const json back = json::parse(Payload(HtmlPage(result)));
  EXPECT_EQ(back["server"]["device_name"], "broken \xef\xbf\xbd\xef\xbf\xbd name");
  EXPECT_TRUE(back["seconds"].is_null());
}

TEST(LoadHtml, NothingIsFetched) {
  std::string page = HtmlPage(json::object());
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* fetches :
       {"<link rel=\"stylesheet", "src=\"", "@import", "url(", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_EQ(Count(page, fetches), 0u) << fetches;
  // Addresses there are two of, and both are the name of SVG.
  EXPECT_EQ(Count(page, "http://www.w3.org/2000/svg"), 2u);
  EXPECT_EQ(Count(page, "http:"), 2u);
  EXPECT_EQ(Count(page, "https:"), 2u) << "where Chart.js says in comments what it is";
  EXPECT_EQ(Count(page, "this permission notice shall be included"), 1u) << "its licence";
}

}  // namespace
}  // namespace tilewire::load

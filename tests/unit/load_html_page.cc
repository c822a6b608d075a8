// Writes the results page of a result: load_html_page RESULT.json PAGE.html. For the page's tests.
#include <cstdio>
#include <fstream>

#include "client/load/html.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: load_html_page RESULT.json PAGE.html\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  const nlohmann::json result = nlohmann::json::parse(in, nullptr, false);
  if (result.is_discarded()) {
    std::fprintf(stderr, "error: %s is no JSON\n", argv[1]);
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << tilewire::load::HtmlPage(result);
  out.close();
  return out ? 0 : 1;
}

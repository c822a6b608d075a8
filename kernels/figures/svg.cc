#include "kernels/figures/svg.h"

#include "kernels/figures/text.h"

namespace tilewire::svg {
namespace {

/// ` name="1.5"`.
std::string Attribute(const char* name, double value, int digits = 1) {
  std::string text = FormatFixed(value, digits);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return std::string(" ") + name + "=\"" + text + '"';
}

std::string Class(const std::string& style) {
  return " class=\"" + style + '"';
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string Text(double x, double y, const std::string& style, std::string_view words) {
  return "<text" + Attribute("x", x) + Attribute("y", y) + Class(style) + '>' + Escape(words) + "</text>\n";
}

std::string Line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line" + Attribute("x1", x1) + Attribute("y1", y1) + Attribute("x2", x2) + Attribute("y2", y2) +
         Class(style) + "/>\n";
}

std::string Rect(double x, double y, double width, double height, const std::string& style,
                 std::string_view tip, double opacity) {
  std::string out = "<rect" + Attribute("x", x) + Attribute("y", y) + Attribute("width", width) +
                    Attribute("height", height) + Class(style);
  if (opacity < 1) out += Attribute("opacity", opacity, 2);
  return out + (tip.empty() ? "/>\n" : "><title>" + Escape(tip) + "</title></rect>\n");
}

std::string Document(double width, double height, std::string_view title, const std::string& css,
                     const std::string& body) {
  const std::string w = FormatFixed(width, 0), h = FormatFixed(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + w + ' ' + h + "\" width=\"" + w +
         "\" height=\"" + h + "\" role=\"img\">\n<title>" + Escape(title) + "</title>\n<style>\n" + css +
         "</style>\n" + body + "</svg>\n";
}

}  // namespace tilewire::svg

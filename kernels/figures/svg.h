// Pieces of SVG pictures. Coordinates are written with one decimal at most; `style` is a class, or several.
#pragma once

#include <string>
#include <string_view>

namespace tilewire::svg {

/// `text` as XML text or attribute value; bytes that XML does not know become '?'.
std::string Escape(std::string_view text);

std::string Text(double x, double y, const std::string& style, std::string_view words);
std::string Line(double x1, double y1, double x2, double y2, const std::string& style);
/// `tip`: what it says under the mouse.
std::string Rect(double x, double y, double width, double height, const std::string& style,
                 std::string_view tip = {}, double opacity = 1);

/// A whole picture: `css` is its style sheet, `body` are pieces.
std::string Document(double width, double height, std::string_view title, const std::string& css,
                     const std::string& body);

}  // namespace tilewire::svg

#pragma once

#include <string_view>

namespace tilewire::load {

/// Stand in the page where the colours of stages and the result go, exactly once and in this order.
inline constexpr std::string_view kPaletteMark = "{{palette}}", kResultMark = "{{result}}";

/// The page of client/load/page/ with its style and scripts in place, as put together by
/// client/load/page/embed.cmake at build time. Static storage.
std::string_view PageTemplate();

}  // namespace tilewire::load

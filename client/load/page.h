#pragma once

#include <string_view>

namespace tilewire::load {

/// Stands in the page where the result goes, exactly once.
inline constexpr std::string_view kResultMark = "{{result}}";

/// The page of client/load/page/ with its style and scripts in place, as put together by
/// client/load/page/embed.cmake at build time. Static storage.
std::string_view PageTemplate();

}  // namespace tilewire::load

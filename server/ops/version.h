// Which build this is.
#pragma once

#include <string>
#include <string_view>

namespace tilewire::ops {

/// "X.Y.Z", from the build.
std::string_view Version();

/// What `--version` prints: "tilewired X.Y.Z", and below it what was built in (CUDA, compiler, build type).
std::string VersionText();

}  // namespace tilewire::ops

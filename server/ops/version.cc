#include "server/ops/version.h"

namespace tilewire::ops {
namespace {

#if defined(TILEWIRE_HAVE_CUDA)
constexpr std::string_view kCuda = "on";
#else
constexpr std::string_view kCuda = "off";
#endif

#if defined(__clang__)
constexpr std::string_view kCompiler = "clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "gcc " __VERSION__;
#endif

#if defined(NDEBUG)
constexpr std::string_view kAssertions = "off";
#else
constexpr std::string_view kAssertions = "on";
#endif

}  // namespace

std::string_view Version() {
  return TILEWIRE_VERSION;
}

std::string VersionText() {
  std::string text = "tilewired ";
  text.append(Version()).append("\nCUDA: ").append(kCuda);
  text.append("\ncompiler: ").append(kCompiler).append("\nassertions: ").append(kAssertions);
  return text;
}

}  // namespace tilewire::ops

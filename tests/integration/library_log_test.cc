// What gRPC and protobuf say, on its way to our log.
#include "server/rpc/library_log.h"

#include <grpc/support/log.h>

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

TEST(LibraryLog, LastWordsAreKnownAsSuch) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC does itself once it is used
  std::vector<std::pair<LibrarySeverity, std::string>> lines;
  {
    const LibraryLogRoute route(
        [&](LibrarySeverity severity, std::string_view library, std::string_view text) {
          // Threads of gRPC that other tests left may speak, too.
          if (library == "grpc" && text.find("LibraryLogTest") != text.npos)
            lines.emplace_back(severity, std::string(text));
        });
    gpr_log(GPR_ERROR, "%s", "LibraryLogTest: something failed");
    gpr_log(GPR_ERROR, "assertion failed: %s", "LibraryLogTest");  // as GPR_ASSERT does before it aborts
  }
  const std::vector<std::pair<LibrarySeverity, std::string>> both{
      {LibrarySeverity::kError, "LibraryLogTest: something failed"},
      {LibrarySeverity::kLast, "assertion failed: LibraryLogTest"}};
  EXPECT_EQ(lines, both);
}

}  // namespace
}  // namespace tilewire::rpc

// Whole connections: whatever a client sends, in HTTP/2 or not, a server in this process ends the connection
// with all that it held, and goes on answering others.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/fuzz/connection/client.h"
#include "tests/fuzz/connection/records.h"
#include "tests/fuzz/connection/servers.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using tilewire::fuzz::Client;
using tilewire::fuzz::Counts;
using tilewire::fuzz::FuzzedServer;
using tilewire::fuzz::Kind;
using tilewire::fuzz::Record;
using tilewire::fuzz::Script;

/// Another connection calls after so many inputs, and after the first.
constexpr int kHonestEvery = 64;

/// What a sealed script says of its calls comes true. Before the connection ends: of an answer that gRPC has
/// just written then, it says that nobody got it.
void CheckEnded(const Script& script, Counts* counts) {
  const auto calls =
      static_cast<int>(std::count_if(script.records.begin(), script.records.end(),
                                     [](const Record& record) { return record.kind == Kind::kCall; }));
  const Counts::Ended ended = counts->AwaitEnded(calls);
  const bool expected = ended.calls == calls && static_cast<int>(ended.failures.size()) == *script.failures;
  if (!expected) std::fprintf(stderr, "%d of %d calls ended\n", ended.calls, calls);
  for (const std::string& failure : ended.failures)
    if (!expected) std::fprintf(stderr, "failed: %s\n", failure.c_str());
  FUZZ_CHECK(expected);
}

/// All of a connection that is as it should be, but for what its calls say: each of them is answered.
bool OnlyWholeCalls(const Script& script) {
  using namespace tilewire::fuzz;
  if ((script.flags & kNoGreeting) != 0) return false;
  return std::all_of(script.records.begin(), script.records.end(), [](const Record& record) {
    constexpr uint8_t kOdd = kNone | kLonger;
    if (record.kind == Kind::kSettle) return true;
    const bool endless = kMethods[record.a % kMethods.size()].ends_with("/Watch");
    return record.kind == Kind::kCall && (record.b & kLast) != 0 && (record.b & kOdd) == 0 && !endless;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // What is wrong with inputs is what they are for: nobody need hear of it.
  static const bool quiet =
      (setenv("GRPC_VERBOSITY", "NONE", 0), google::protobuf::SetLogHandler(nullptr), true);
  (void)quiet;
  static std::array<std::unique_ptr<FuzzedServer>, 2> servers{std::make_unique<FuzzedServer>(false),
                                                              std::make_unique<FuzzedServer>(true)};
  static int inputs = 0;
  const Script script = tilewire::fuzz::ParseScript(data, size);
  FuzzedServer& server = *servers[(script.flags & tilewire::fuzz::kStaged) != 0];
  {
    const tilewire::fuzz::SharedPages pages;
    Client client(server.Dial((script.flags & tilewire::fuzz::kUnix) != 0), pages.name());
    if (script.failures) {
      const std::string name = "sealed-" + std::to_string(inputs);
      server.counts().Follow(name);
      client.Name(name);
      client.Run(script, true, [&] { CheckEnded(script, &server.counts()); });
    } else {
      client.Run(script, OnlyWholeCalls(script), [] {});
    }
  }
  server.CheckNothingIsLeft();
  if (inputs++ % kHonestEvery != 0) return 0;
  for (const auto& each : servers) {
    each->CheckHonestCalls();
    each->CheckNothingIsLeft();
  }
  return 0;
}
